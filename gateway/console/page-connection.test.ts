import type { Page } from 'playwright-core';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { LIVE, stateOf, usePages } from './testing/use-pages.ts';

let closedUrl: string;
const { market, open } = usePages(async (market) => {
  closedUrl = await market.startClosedApi();
  await market.send({ symbol: 'A.T', gross_spread_percent: 0.3 });
});

const spreadOf = (page: Page, symbol: string) =>
  page.locator(`tr[data-symbol="${symbol}"] .spread`).innerText();

/** The client waits up to 30 s between attempts, and processes need time to start. */
const COMES_BACK_MS = 150_000;

function untilState(page: Page, wanted: RegExp): Promise<true> {
  const probe = async () => {
    const state = await stateOf(page);
    return wanted.test(state) || state;
  };
  return waitFor(`a page that says ${wanted}`, probe, COMES_BACK_MS);
}

const untilSpread = (page: Page, symbol: string, spread: string) =>
  waitFor(`${symbol} ${spread}`, async () => (await spreadOf(page, symbol)) === spread);

test('a killed stream: never "Live" before it is back, then all missed pills', async () => {
  const { page } = await open();
  let sockets = 0;
  page.on('websocket', () => {
    sockets += 1;
  });
  await untilState(page, LIVE);
  await untilSpread(page, 'A.T', '0.3000');
  await page.evaluate(`window.words = []; new MutationObserver(() => {
    words.push(document.querySelector('[role=status] strong').textContent);
  }).observe(document.querySelector('[role=status]'), { subtree: true, characterData: true, childList: true })`);
  await market().killStream();
  try {
    await untilState(page, /^Reconnecting/);
    await page.getByText(/^As of \d\d:\d\d:\d\d$/).waitFor();
    await market().send({ symbol: 'A.T', gross_spread_percent: 0.4 });
    const before = sockets;
    await waitFor('attempts without an answer', () => sockets >= before + 2);
  } finally {
    await market().startStream();
  }
  await untilState(page, LIVE);
  const words = (await page.evaluate('words')) as string[];
  // The line also changes within a state, and before the page notices the kill.
  const states = words.filter((word, index) => word !== words[index - 1]);
  if (states[0] === 'Live') states.shift();
  expect(states).toEqual(['Reconnecting', 'Live']);
  await untilSpread(page, 'A.T', '0.4000');
  expect(await page.getByText(/^As of /).count()).toBe(0);
  await market().send({ symbol: 'A.T', gross_spread_percent: 0.5 });
  await untilSpread(page, 'A.T', '0.5000');
  expect(await page.locator('.gaps').count()).toBe(0);
});

test('a stream that hangs is not live, although its socket is open', async () => {
  const { page } = await open();
  await untilState(page, LIVE);
  market().freezeStream();
  try {
    await untilState(page, /^Silent/);
    await untilState(page, /^Reconnecting/);
  } finally {
    market().thawStream();
  }
  await untilState(page, LIVE);
});

test('on a phone the connection and its button stay in sight', async () => {
  const { page } = await open({ width: 390, height: 844, isPhone: true });
  await untilState(page, LIVE);
  const names = Array.from({ length: 40 }, (_, n) => `P${n}.T`);
  for (const symbol of names) await market().send({ symbol });
  await waitFor('lines to scroll through', async () => {
    const count = await page.locator('tr[data-symbol]').count();
    return count > 20 || String(count);
  });
  await page.mouse.wheel(0, 600);
  await waitFor('to be scrolled', async () => Number(await page.evaluate('scrollY')) > 300);
  const filterWidth = async () => (await page.getByPlaceholder('Filter').boundingBox())!.width;
  const width = await filterWidth();
  await market().killStream();
  try {
    await page.getByText(/^As of /).waitFor();
    // All at the same moment: the countdown runs, and the button disappears in the last seconds.
    const inSight = `['[role=status]', '.countdown', '.connection button'].every((part) => {
      const box = document.querySelector(part)?.getBoundingClientRect();
      const filter = document.querySelector('.filter').getBoundingClientRect();
      return box !== undefined && box.top >= 0 && box.bottom <= filter.top;
    })`;
    await waitFor('all of it in sight', () => page.evaluate(inSight), COMES_BACK_MS);
    expect(await filterWidth()).toBe(width);
  } finally {
    await market().startStream();
  }
  await untilState(page, LIVE);
});

test('a ticket request without an answer is repeated', async () => {
  const { page } = await open();
  await untilState(page, LIVE);
  // The request is never answered.
  await page.route('**/demo-tickets', () => undefined);
  await page.reload();
  await untilState(page, /^Reconnecting The connection was lost\.$/);
  await page.unroute('**/demo-tickets');
  await untilState(page, LIVE);
});

test('the page shows the reports of frames: an unavailable log, quiet, gaps', async () => {
  const { page } = await open();
  let send: (frame: object) => void = () => {};
  // The real stream, with additional frames that it has no reason to send now.
  await page.routeWebSocket(/\/api\/stream/, (socket) => {
    const server = socket.connectToServer();
    send = (frame) => socket.send(JSON.stringify(frame));
    // Real heartbeats would report that the log is available; without any frame the stream would be
    // silent.
    server.onMessage((frame) => {
      socket.send(String(frame).includes('"type":"heartbeat"') ? '{"type":"pong"}' : frame);
    });
  });
  await page.reload();
  await untilState(page, LIVE);
  const time = new Date().toISOString().replace('Z', '000Z');
  const status = { type: 'status', time, component: 'log', since: time, until: null, message: '' };
  send({ ...status, state: 'down', code: 'log_unreachable' });
  await untilState(page, /^Stale The platform’s log is unavailable since \d\d:\d\d:\d\d/);
  send({ ...status, state: 'up', code: 'log_reachable' });
  await untilState(page, LIVE);
  const symbol = 'A.T';
  send({ type: 'quiet', symbol, reason: 'lunch_break', since: null, until: time });
  const cell = page.locator(`tr[data-symbol="${symbol}"] .state`);
  await waitFor('the reason', async () => /lunch break until/.test(await cell.innerText()));
  const gap = { type: 'gap', after: '0-1', until: '0-9', fill: null, fill_free: false };
  send({ ...gap, symbols: [symbol, 'B.T'], reason: 'position_expired' });
  await page.getByText('1 gap reported').click();
  await page
    .getByText(/A\.T, B\.T: position expired; the missing pills are not shown below/)
    .waitFor();
});

test('without a demo: the page asks for a key and accepts it', async () => {
  const { page, complaints } = await open({}, closedUrl);
  await page.getByText('Paste an API key of a Pro or Institutional account').waitFor();
  expect(await stateOf(page)).toBe('Locked');
  expect(await page.locator('table').count()).toBe(0);
  const ticket = new URL('/api/stream/demo-tickets', closedUrl);
  const minted = await request(ticket, { method: 'POST' });
  await minted.body.dump();
  expect(minted.statusCode).toBe(404);
  for (const [path, status] of [
    ['/console/demo/market/verify?symbol=A.T', 404],
    ['/console/demo/analytics/bars?symbol=A.T', 404],
    ['/console/market?symbols=A.T', 401],
  ] as const) {
    const { statusCode, body } = await request(new URL(path, closedUrl));
    await body.dump();
    expect([path, statusCode]).toEqual([path, status]);
  }
  await page.getByLabel('API key').fill(market().account.key);
  await page.keyboard.press('Enter');
  await untilState(page, LIVE);
  await page.locator('tr[data-symbol="A.T"]').waitFor();
  await page.locator('tr[data-symbol="A.T"] .venue').waitFor(); // read with the key
  expect(await page.evaluate('Object.keys(localStorage).concat(document.cookie)')).toEqual(['']);
  expect(page.url()).toBe(closedUrl);
  await page.reload();
  await untilState(page, /^Locked$/);
  expect(complaints).toEqual([]);
});

test('a refused key: the reason, and a field for another one', async () => {
  const { page } = await open({}, closedUrl);
  await page.getByLabel('API key').fill(market().basic.key);
  await page.getByRole('button', { name: 'Connect' }).click();
  await untilState(page, /^Offline .*Pro/);
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
  await page.getByLabel('API key').fill(market().account.key);
  await page.keyboard.press('Enter');
  await untilState(page, LIVE);
});
