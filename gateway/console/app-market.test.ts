import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { PillRecord } from '../../schemas/pill.ts';
import { startIngest } from '../../testing/ingest-process.ts';
import { makePill, openPillWriter } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { createPoster, type Poster } from '../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../api/testing/account-api.ts';
import { type Customer, PASSWORD } from '../api/testing/customer.ts';
import { openAppPages } from './testing/app-pages.ts';
import { checkPage, LOOKS } from './testing/axe.ts';

/** Symbols and analytics in the console, with pills that are posted to a real ingest. */
let api: AccountApi;
let pages: Awaited<ReturnType<typeof openAppPages>>;
let poster: Poster;
let customer: Customer;
const running: TestProcess[] = [];
const SYMBOLS = ['7203.T', '6758.T', 'USD/JPY'] as const;

const send = (fields: Partial<PillRecord>) => poster.post(makePill(fields));

beforeAll(async () => {
  pages = await openAppPages(() => api.base, PASSWORD);
  const port = String(await getPort());
  api = await openAccountApi({ STREAM_URL: `ws://127.0.0.1:${port}` });
  running.push(
    await startProcess('gateway/stream/main.js', [], { ...api.namespace.env, STREAM_PORT: port }),
  );
  const ingest = await startIngest(api.namespace);
  running.push(ingest.process);
  for (const processor of ['latest', 'analytics']) {
    running.push(await startProcess('pipelines/main.js', [processor], api.namespace.env));
  }
  await Promise.all(running.map((process) => process.ready()));
  poster = createPoster(ingest.url);
  for (let round = 0; round < 40; round += 1) {
    for (const symbol of SYMBOLS) {
      await send({ symbol, gross_spread_percent: 0.1 + (round % 7) / 100 });
    }
  }
  customer = await api.customer('trader', 'pro');
  await waitFor('the pills to be analysed', async () => {
    const token = customer.credentials();
    const path = `/api/analytics/summary?symbol=${encodeURIComponent('USD/JPY')}`;
    const { body } = await customer.send('GET', path, undefined, token);
    return body.count === 40 || `${body.count} ${body.code}`;
  });
});

afterEach(() => pages.closePages());

afterAll(async () => {
  await pages?.close();
  await poster?.close();
  await Promise.all(running.map((process) => process.stop()));
  await api?.close();
});

test('a read that costs a call needs the CSRF token, so a link of another site costs nothing', async () => {
  const { cookie } = customer.credentials();
  const path = '/api/pills/latest?symbol=7203.T';
  const used = async () => (await customer.send('GET', '/api/usage')).body.today.used;
  const before = await used();
  const followed = await api.stranger('nobody').send('GET', path, undefined, { cookie: cookie! });
  expect([followed.status, followed.body.code]).toEqual([403, 'csrf_token_invalid']);
  expect(await used()).toBe(before);
  const read = await customer.send('GET', path, undefined, customer.credentials());
  expect(read.status).toBe(200);
  expect(await used()).toBe(before + 1);
});

test('a symbol: found, drawn, changed by a new pill, downloaded', async () => {
  const { page } = await pages.open('/app/symbols?q=jpy');
  await pages.signIn(page, customer.email, 'Symbols');
  await page.getByRole('link', { name: 'USD/JPY' }).click();
  await page.getByRole('heading', { name: 'USD/JPY', exact: true }).waitFor();
  const newest = page.locator('.facts dd.flash');
  const last = `${(0.1 + (39 % 7) / 100).toFixed(4)} %`;
  await waitFor('the newest pill', async () => (await newest.innerText()) === last);
  await page.getByRole('img', { name: /^Spread of USD\/JPY, \d+ bars of 1m$/ }).waitFor();
  await page.getByText('The newest bars as a table').click();
  await page.getByRole('columnheader', { name: 'Median', exact: true }).first().waitFor();

  await send({ symbol: 'USD/JPY', gross_spread_percent: 0.4321 });
  // By itself: the page is read again every 10 s.
  await waitFor('the new pill', async () => (await newest.innerText()) === '0.4321 %');

  await page.getByRole('button', { name: '1s', exact: true }).click();
  await page.getByRole('img', { name: /bars of 1s$/ }).waitFor();
  await page.reload();
  await page.getByRole('img', { name: /bars of 1s$/ }).waitFor();
  expect(page.url()).toContain('interval=1s');

  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download CSV' }).click(),
  ]);
  expect(file.suggestedFilename()).toBe('USD-JPY.csv');
  const chunks: Buffer[] = [];
  for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer);
  expect(Buffer.concat(chunks).toString().trim().split('\n')).toHaveLength(1 + 41);
});

test('a live symbol follows its socket without further reads, in the address too', async () => {
  const { page } = await pages.open('/app/symbol?symbol=6758.T');
  await pages.signIn(page, customer.email, '6758.T');
  await page.getByText('Time of the pill', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Go live' }).click();
  await page.getByText('Live: each pill as it arrives.').waitFor();
  let reads = 0;
  page.on('request', (request) => {
    if (request.url().includes('/api/pills/latest')) reads += 1;
  });
  const newest = page.locator('.facts dd.flash');
  for (const [spread, text] of [
    [0.5111, '0.5111 %'],
    [0.5222, '0.5222 %'],
  ] as const) {
    await send({ symbol: '6758.T', gross_spread_percent: spread });
    await waitFor('the live pill', async () => (await newest.innerText()) === text);
  }
  expect(reads).toBe(0);
  expect(page.url()).toContain('live=1');
  const sockets = async () => (await customer.send('GET', '/api/stream/sessions')).body.data.length;
  await waitFor('the socket of the page', async () => (await sockets()) === 1);
  await page.getByRole('button', { name: 'Stop live' }).click();
  await waitFor('the end of the socket', async () => (await sockets()) === 0);
  expect(page.url()).not.toContain('live');
});

test('an operation is found, tried as the user, and shown with the plan and key', async () => {
  await customer.send('POST', '/api/keys', { name: 'desk 9' });
  const { page } = await pages.open('/app/docs');
  await pages.signIn(page, customer.email, 'Docs');
  await page.getByLabel('Filter operations').fill('pills/latest');
  await page.getByRole('link', { name: 'GET /api/pills/latest' }).click();
  await page.getByText('basic and above (yours)').waitFor();
  await page.getByText('such as desk 9 (').waitFor();
  await page.getByLabel('Value of symbol', { exact: true }).fill('6758.T');
  await page.getByText("pills/latest?symbol=6758.T'").first().waitFor();
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText(/^Answer, \d+ ms$/).waitFor();
  expect(await page.getByText('"symbol": "6758.T"').count()).toBeGreaterThan(0);

  await page.getByRole('link', { name: 'All operations' }).click();
  await page.getByLabel('Filter operations').fill('nothing has these');
  await page.getByText('No operation has these words.').waitFor();
  await page.getByRole('link', { name: 'Stream', exact: true }).click();
  await page.getByText('Sent by clients').waitFor();
  await page.getByRole('code').filter({ hasText: 'heartbeat' }).first().waitFor();
});

test('the palette leads to pages and symbols by keys alone', async () => {
  const { page } = await pages.open('/app/sign-in');
  await pages.signIn(page, customer.email);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('6758');
  await page.getByRole('option', { name: /^6758\.T/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: '6758.T', exact: true }).waitFor();
  // A busy machine draws late; the keys of a fast hand must not be lost meanwhile.
  await page.evaluate('window.requestAnimationFrame = () => 0');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('s');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Streams', exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.press('Escape');
  expect(await page.getByRole('dialog').count()).toBe(0);
  await page.goBack();
  await page.getByRole('heading', { name: '6758.T', exact: true }).waitFor();
});

test('a plan without analytics shows what it has, and which plan has the rest', async () => {
  const small = await api.customer('small', 'basic');
  const { page } = await pages.open('/app/symbol?symbol=7203.T');
  await pages.signIn(page, small.email, '7203.T');
  await page.getByText('Time of the pill', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'See the plans' }).first().click();
  await page.getByRole('heading', { name: 'Plans', exact: true }).waitFor();
});

test.each(LOOKS)(
  'no page of the market has a fault of accessibility: %s, %i px',
  async (scheme, width) => {
    const { page, complaints } = await pages.open('/app/symbols', { scheme, width });
    await pages.signIn(page, customer.email, 'Symbols');
    await checkPage(page, 'Symbols', scheme);
    await page.goto(`${api.base}/app/symbol?symbol=7203.T`);
    await checkPage(page, '7203.T', scheme);
    for (const [view, heading] of [
      ['movers', 'Analytics'],
      ['confidence', 'Analytics'],
      [`correlation&symbols=${encodeURIComponent(SYMBOLS.join())}`, 'Analytics'],
    ] as const) {
      await page.goto(`${api.base}/app/analytics?view=${view}`);
      await checkPage(page, heading, `${view.split('&', 1)[0]}-${scheme}`);
    }
    for (const [place, name] of [
      ['', 'docs'],
      ['?op=getPillsLatest', 'operation'],
      ['?view=stream', 'frames'],
    ] as const) {
      await page.goto(`${api.base}/app/docs${place}`);
      await page.locator('summary, td').first().waitFor();
      await checkPage(page, 'Docs', `${name}-${scheme}`);
    }
    await page.keyboard.press('Control+k');
    await page.getByRole('listbox').waitFor();
    await checkPage(page, 'Docs', `palette-${scheme}`);
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([]);
  },
);

test('a thousand symbols are listed and found; only visible rows are in the document', async () => {
  const names = Array.from({ length: 1_000 }, (_, n) => `Z${String(n).padStart(4, '0')}.T`);
  const writer = await openPillWriter(api.namespace);
  try {
    await writer.write(names.map((symbol) => makePill({ symbol })));
  } finally {
    await writer.close();
  }
  const { page } = await pages.open('/app/symbols');
  await pages.signIn(page, customer.email, 'Symbols');
  await waitFor('all symbols to be listed', async () => {
    const rows = Number(await page.locator('table').getAttribute('aria-rowcount'));
    if (rows === 1_000 + SYMBOLS.length + 1) return true;
    await page.reload();
    await page.locator('table').waitFor();
    return String(rows);
  });
  const rows = page.locator('tbody tr[aria-rowindex]');
  expect(await rows.count()).toBeLessThan(80);
  await page.keyboard.press('End');
  const last = page.getByRole('link', { name: 'Z0999.T', exact: true });
  await last.waitFor();
  const place = last.locator('xpath=ancestor::tr');
  expect(await place.getAttribute('aria-rowindex')).toBe(String(1_000 + SYMBOLS.length + 1));
  expect(await rows.count()).toBeLessThan(80);
  await page.getByLabel('Filter by symbol or venue').fill('z0500');
  await waitFor('one row to remain', async () => (await rows.count()) === 1);
  expect(new URL(page.url()).searchParams.get('q')).toBe('z0500');
});
