// A customer's page on an origin of its own, in a real browser: the client follows the stream and
// fills a gap over REST.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPage } from '../gateway/console/testing/chromium.ts';
import type { Database } from '../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../testing/accounts.ts';
import { startIngest } from '../testing/ingest-process.ts';
import { launchChromium } from '../testing/launch-chromium.ts';
import { createNamespace } from '../testing/namespace.ts';
import { makePill } from '../testing/pills.ts';
import { getPort } from '../testing/ports.ts';
import { createPoster, type Poster } from '../testing/poster.ts';
import { startProcess, type TestProcess } from '../testing/process.ts';
import { waitFor } from '../testing/wait.ts';
import { createClient } from './index.ts';

const SYMBOL = '7203.T';
const processes: TestProcess[] = [];
let db: Database;
let key: string;
let poster: Poster;
let apiUrl: string;
let streamUrl: string;
let browser: Browser;
let deskUrl: string;
let evilUrl: string;
const site = createServer();

beforeAll(async () => {
  const code = await bundle();
  site.on('request', ({ url }, response) => {
    const isScript = url === '/client.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? code : '<!doctype html><script src="/client.js"></script>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const { port } = site.address() as AddressInfo;
  deskUrl = `http://desk.example:${port}`;
  evilUrl = `http://evil.example:${port}`;
  browser = await launchChromium(['--host-resolver-rules=MAP *.example 127.0.0.1']);

  const namespace = await createNamespace();
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'pro' }));
  const [apiPort, streamPort] = [String(await getPort()), String(await getPort())];
  apiUrl = `http://127.0.0.1:${apiPort}`;
  streamUrl = `ws://127.0.0.1:${streamPort}`;
  const env = { ...namespace.env, STREAM_ORIGINS: deskUrl };
  for (const [entry, args, more] of [
    ['gateway/api/main.js', [], { API_PORT: apiPort }],
    ['gateway/stream/main.js', [], { STREAM_PORT: streamPort }],
    ['pipelines/main.js', ['latest'], {}],
    ['pipelines/main.js', ['analytics'], {}],
  ] as const) {
    processes.push(await startProcess(entry, args, { ...env, ...more }));
    await processes.at(-1)!.ready();
  }
  const ingest = await startIngest(namespace);
  processes.push(ingest.process);
  await ingest.process.ready();
  poster = createPoster(ingest.url);
});

afterAll(async () => {
  await browser?.close();
  site.close();
  await Promise.all(processes.map((process) => process.stop()));
  await poster?.close();
  await db?.destroy();
});

/** The client as a page loads it: one script without modules. */
async function bundle(): Promise<string> {
  const built = await rolldown({ input: path.join(import.meta.dirname, 'browser.ts') });
  const { output } = await built.generate({ format: 'iife', name: 'pillole' });
  return output[0].code;
}

const send = (id: string) => poster.post(makePill({ id, symbol: SYMBOL }));

interface Received {
  readonly type: string;
  readonly id?: string;
  readonly replayed?: true;
  readonly filled?: boolean;
  readonly error?: unknown;
}
const received = async (page: Page) => (await page.evaluate('items')) as readonly Received[];

test('a page of an allowed origin follows the stream, and its gap is filled over REST', async () => {
  const { page, complaints } = await openPage(browser, deskUrl);
  await page.routeWebSocket(/\/api\/stream/, (socket) => {
    const server = socket.connectToServer();
    // The page never gets these pills, as if the network had lost them.
    server.onMessage((frame) => {
      if (!String(frame).includes('"id":"missed')) socket.send(frame);
    });
  });
  await page.evaluate(`
    window.items = [];
    window.client = pillole.createClient(${JSON.stringify({ apiUrl, streamUrl, key })});
    window.stream = client.stream({ symbols: ${JSON.stringify(SYMBOL)}, snapshot: false });
    stream.on('pill', (pill) => items.push(pill));
    stream.on('gap', (gap) => items.push({ ...gap, error: gap.error?.message }));`);
  await waitFor('a live stream', async () => (await page.evaluate('stream.state')) === 'live');
  await send('first');
  await waitFor('the first pill', async () => (await received(page)).length === 1);
  for (const id of ['missed 1', 'missed 2', 'missed 3']) await send(id);
  // History has the missed pills before the page notices the gap.
  const client = createClient({ apiUrl, key });
  await waitFor('the missed pills in history', async () => {
    const { data, position } = await client.latest(SYMBOL);
    if (data.id !== 'missed 3') return data.id;
    await client.history({ until: position, limit: 1 });
    return true;
  });
  await send('last');
  await waitFor('the end', async () => {
    const items = await received(page);
    return items.some(({ id }) => id === 'last') || JSON.stringify(items);
  });
  const items = await received(page);
  const gaps = items.filter(({ type }) => type === 'gap');
  expect(gaps).toMatchObject([{ filled: true, pills: 3, reason: 'prev_broken' }]);
  expect(gaps[0]!.error).toBeUndefined();
  expect(items.flatMap(({ id, replayed }) => (id === undefined ? [] : [[id, replayed]]))).toEqual([
    ['first', undefined],
    ...['missed 1', 'missed 2', 'missed 3'].map((id) => [id, true]),
    ['last', undefined],
  ]);
  expect(complaints).toEqual([]);
});

test('a page reads limits, validators and the next page from the headers', async () => {
  const { page } = await openPage(browser, deskUrl);
  const names = ['RateLimit', 'RateLimit-Policy', 'ETag', 'Link', 'Pill-Position', 'Api-Version'];
  const read = (query: string, headers: object) =>
    page.evaluate(`fetch(${JSON.stringify(`${apiUrl}/api/pills?${query}`)}, {
      headers: ${JSON.stringify({ 'x-api-key': key, ...headers })},
    }).then(({ status, headers }) => [
      status, ...${JSON.stringify(names)}.map((name) => headers.get(name)),
    ])`) as Promise<readonly [number, ...(string | null)[]]>;
  const { position } = await createClient({ apiUrl, key }).latest(SYMBOL);
  // A busy PostgreSQL is answered with 503: the request is repeated, as the client does.
  const [status, ...values] = await waitFor('an answer', async () => {
    const answer = await read(`until=${position}&limit=1`, {});
    return answer[0] !== 503 && answer;
  });
  expect(status).toBe(200);
  expect(values.map((value, at) => [names[at], value])).toEqual(
    names.map((name) => [name, expect.stringMatching(/./)]),
  );
  const refused = await waitFor('a refusal', async () => {
    const answer = await read('symbol=7203.T&from=yesterday', { 'if-none-match': '"x"' });
    return answer[0] !== 503 && answer;
  });
  expect(refused[0]).toBe(400);
});

test('a page of another origin reads nothing, and no page uses a session', async () => {
  const blocked = (page: Page, path: string, init: object) =>
    page.evaluate(`fetch(${JSON.stringify(apiUrl + path)}, ${JSON.stringify(init)})
      .then(({ status }) => 'read ' + status, (error) => error.name)`);
  const { page: evil } = await openPage(browser, evilUrl);
  expect(await blocked(evil, '/api/status', {})).toBe('TypeError');
  expect(await blocked(evil, '/api/account', { headers: { 'x-api-key': key } })).toBe('TypeError');
  const { page: desk } = await openPage(browser, deskUrl);
  expect(await blocked(desk, '/api/status', {})).toBe('read 200');
  expect(await blocked(desk, '/api/status', { credentials: 'include' })).toBe('TypeError');
  expect(await blocked(desk, '/api/keys', { credentials: 'include' })).toBe('TypeError');
  const headers = { 'content-type': 'application/json' };
  const signIn = { method: 'POST', body: '{}', headers };
  expect(await blocked(desk, '/api/session', signIn)).toBe('TypeError');
});
