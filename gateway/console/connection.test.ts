import type { Page } from 'playwright-core';
import { request } from 'undici';
import { expect, test, vi } from 'vitest';
import { waitFor } from '../../lib/testing/wait.ts';
import { stateOf, useVisits } from './testing/visits.ts';

vi.setConfig({ testTimeout: 180_000 });

let closedUrl: string;
const { place, open } = useVisits(async (market) => {
  closedUrl = await market.startClosedApi();
  await market.send({ symbol: 'A.T', gross_spread_percent: 0.3 });
});

const spreadOf = (page: Page, symbol: string) =>
  page.locator(`tr[data-symbol="${symbol}"] .spread`).innerText();

/** The client waits for up to 30 s between attempts, and starts of processes take their time. */
const COMES_BACK_MS = 80_000;

function untilState(page: Page, wanted: RegExp): Promise<true> {
  const probe = async () => {
    const state = await stateOf(page);
    return wanted.test(state) || state;
  };
  return waitFor(`a page that says ${wanted}`, probe, COMES_BACK_MS);
}

const untilSpread = (page: Page, symbol: string, spread: string) =>
  waitFor(`${symbol} ${spread}`, async () => (await spreadOf(page, symbol)) === spread);

test('the stream is killed and comes back: never "Live" between, then all that came', async () => {
  const { page } = await open();
  let sockets = 0;
  page.on('websocket', () => {
    sockets += 1;
  });
  await untilState(page, /^Live$/);
  await untilSpread(page, 'A.T', '0.3000');
  await page.evaluate(`window.said = []; new MutationObserver(() => {
    said.push(document.querySelector('[role=status] strong').textContent);
  }).observe(document.querySelector('[role=status]'), { subtree: true, characterData: true, childList: true })`);
  await place().killStream();
  try {
    await untilState(page, /^Reconnecting/);
    await page.getByText(/^As of \d\d:\d\d:\d\d$/).waitFor();
    await place().send({ symbol: 'A.T', gross_spread_percent: 0.4 });
    const before = sockets;
    await waitFor('attempts that nobody answers', () => sockets >= before + 2);
  } finally {
    await place().startStream();
  }
  await untilState(page, /^Live$/);
  const said = (await page.evaluate('said')) as string[];
  expect(new Set(said.slice(0, -1))).toEqual(new Set(['Reconnecting']));
  expect(said.at(-1)).toBe('Live');
  await untilSpread(page, 'A.T', '0.4000');
  expect(await page.getByText(/^As of /).count()).toBe(0);
  await place().send({ symbol: 'A.T', gross_spread_percent: 0.5 });
  await untilSpread(page, 'A.T', '0.5000');
  expect(await page.locator('.gaps').count()).toBe(0);
});

test('a stream that hangs is not live, although its socket is open', async () => {
  const { page } = await open();
  await untilState(page, /^Live$/);
  place().freezeStream();
  try {
    await untilState(page, /^Silent/);
    await untilState(page, /^Reconnecting/);
  } finally {
    place().thawStream();
  }
  await untilState(page, /^Live$/);
});

test('on a phone the connection stays in sight, and so does the way to try again', async () => {
  const { page } = await open({ width: 390, height: 844, isPhone: true });
  await untilState(page, /^Live$/);
  const names = Array.from({ length: 40 }, (_, n) => `P${n}.T`);
  for (const symbol of names) await place().send({ symbol });
  await waitFor('lines to scroll through', async () => {
    const count = await page.locator('tr[data-symbol]').count();
    return count > 20 || String(count);
  });
  await page.mouse.wheel(0, 600);
  await waitFor('to be scrolled', async () => Number(await page.evaluate('scrollY')) > 300);
  const filterWidth = async () => (await page.getByPlaceholder('Filter').boundingBox())!.width;
  const width = await filterWidth();
  await place().killStream();
  try {
    await page.getByText(/^As of /).waitFor();
    // At one moment: the countdown goes on, and the button goes away for the last seconds.
    const inSight = `['[role=status]', '.countdown', '.connection button'].every((part) => {
      const box = document.querySelector(part)?.getBoundingClientRect();
      const filter = document.querySelector('.filter').getBoundingClientRect();
      return box !== undefined && box.top >= 0 && box.bottom <= filter.top;
    })`;
    await waitFor('all of it in sight', () => page.evaluate(inSight), COMES_BACK_MS);
    expect(await filterWidth()).toBe(width);
  } finally {
    await place().startStream();
  }
  await untilState(page, /^Live$/);
});

test('a ticket that is asked for in vain is asked for again', async () => {
  const { page } = await open();
  await untilState(page, /^Live$/);
  // Nobody answers it.
  await page.route('**/demo-tickets', () => undefined);
  await page.reload();
  await untilState(page, /^Reconnecting The connection was lost\.$/);
  await page.unroute('**/demo-tickets');
  await untilState(page, /^Live$/);
});

test('what the stream says is said: the log is away, why it is quiet, what is missing', async () => {
  const { page } = await open();
  let say: (frame: object) => void = () => {};
  // The real stream, with frames put between that it has no reason for now.
  await page.routeWebSocket(/\/api\/stream/, (socket) => {
    const server = socket.connectToServer();
    say = (frame) => socket.send(JSON.stringify(frame));
    // Its heartbeats would say that the log is there.
    server.onMessage((frame) => {
      if (!String(frame).includes('"type":"heartbeat"')) socket.send(frame);
    });
  });
  await page.reload();
  await untilState(page, /^Live/);
  const time = new Date().toISOString().replace('Z', '000Z');
  const status = { type: 'status', time, component: 'log', since: time, until: null, message: '' };
  say({ ...status, state: 'down', code: 'log_unreachable' });
  await untilState(page, /^Stale The log is away since \d\d:\d\d:\d\d/);
  say({ ...status, state: 'up', code: 'log_reachable' });
  await untilState(page, /^Live/);
  const symbol = 'A.T';
  say({ type: 'quiet', symbol, reason: 'lunch_break', since: null, until: time });
  const market = page.locator(`tr[data-symbol="${symbol}"] .state`);
  await waitFor('the reason', async () => /lunch break until/.test(await market.innerText()));
  const gap = { type: 'gap', after: '0-1', until: '0-9', fill: null, fill_free: false };
  say({ ...gap, symbols: [symbol, 'B.T'], reason: 'position_expired' });
  await page.getByText('1 gap told').click();
  await page
    .getByText(/A\.T, B\.T: position expired; those pills are not in the lines below/)
    .waitFor();
});

test('without a demo: one sentence that says what to do, and a key that does it', async () => {
  const { page, complaints } = await open({}, closedUrl);
  await page.getByText('Paste an API key of a Pro or Institutional account').waitFor();
  expect(await stateOf(page)).toBe('Locked');
  expect(await page.locator('table').count()).toBe(0);
  const ticket = new URL('/api/stream/demo-tickets', closedUrl);
  expect((await request(ticket, { method: 'POST' })).statusCode).toBe(404);
  await page.getByLabel('API key').fill(place().account.key);
  await page.keyboard.press('Enter');
  await untilState(page, /^Live$/);
  await page.locator('tr[data-symbol="A.T"]').waitFor();
  expect(await page.evaluate('Object.keys(localStorage).concat(document.cookie)')).toEqual(['']);
  expect(page.url()).toBe(closedUrl);
  await page.reload();
  await untilState(page, /^Locked$/);
  expect(complaints).toEqual([]);
});

test('a key that is refused: why, and room for another one', async () => {
  const { page } = await open({}, closedUrl);
  await page.getByLabel('API key').fill(place().basic.key);
  await page.getByRole('button', { name: 'Connect' }).click();
  await untilState(page, /^Offline .*Pro/);
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
  await page.getByLabel('API key').fill(place().account.key);
  await page.keyboard.press('Enter');
  await untilState(page, /^Live$/);
});
