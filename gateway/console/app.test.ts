import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { packageRoot } from '../../lib/files/package-root.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../api/testing/account-api.ts';
import { PASSWORD, tokenFor } from '../api/testing/customer.ts';
import { hasHeading, openAppPages, press } from './testing/app-pages.ts';
import { checkPage, LOOKS } from './testing/axe.ts';
import { LIVE, stateOf } from './testing/use-pages.ts';

/** The console as a new customer uses it, in a real browser. */
let api: AccountApi;
let stream: TestProcess;
let streamUrl: string;
const sockets: WebSocket[] = [];
let pages: Awaited<ReturnType<typeof openAppPages>>;

beforeAll(async () => {
  pages = await openAppPages(() => api.base, PASSWORD);
  const port = String(await getPort());
  streamUrl = `ws://127.0.0.1:${port}`;
  api = await openAccountApi({ STREAM_URL: streamUrl });
  const env = { ...api.namespace.env, STREAM_PORT: port };
  stream = await startProcess('gateway/stream/main.js', [], env);
  await stream.ready();
});

afterEach(() => pages.closePages());

afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await pages?.close();
  await stream?.stop();
  await api?.close();
});

async function callLatest(key: string): Promise<number> {
  const headers = { 'x-api-key': key };
  const answer = await request(`${api.base}/api/pills/latest?symbol=7203.T`, { headers });
  await answer.body.dump();
  return answer.statusCode;
}

test('a stranger signs up, buys a plan, uses a key and revokes it', async () => {
  const { page } = await pages.open('/app/sign-up');
  const email = 'newcomer@example.com';
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Create account', hasHeading(page, 'Check your mail'));
  const token = await tokenFor(api.outbox, email, 'Verify');
  // The link of the mail; its token does not stay in the address or the history.
  await page.goto(`${api.base}/app/verify#${token}`);
  await page.getByLabel('Password').fill(PASSWORD);
  expect(page.url()).toBe(`${api.base}/app/verify`);
  await press(page, 'Verify', hasHeading(page, 'Address verified'));
  await page.getByRole('link', { name: 'Continue to the console' }).click();
  await pages.signIn(page, email);

  await page.getByRole('link', { name: 'Choose a plan' }).click();
  const toPay = page.getByText('To pay now');
  await press(page, 'Choose Pro API', async () => (await toPay.count()) > 0);
  await page.getByText('Test billing: no money moves').waitFor();
  await page.getByText('$99.00').waitFor();
  await press(page, 'Pay (test)', hasHeading(page, 'Plan in effect'));

  await page.getByRole('link', { name: 'create an API key' }).click();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name').fill('desk 4');
  await press(page, 'Create', hasHeading(page, 'Your new key'));
  const key = await page.locator('.copyable code').first().innerText();
  expect(key).toMatch(/^pil_live_/);
  const curl = await page.locator('.copyable code').nth(1).innerText();
  expect(curl).toBe(`curl -H 'X-API-Key: ${key}' '${api.base}/api/pills/latest?symbol=7203.T'`);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  const kept =
    '[location.href, JSON.stringify(history.state), ...Object.values(localStorage),' +
    ' ...Object.values(sessionStorage), document.cookie, document.body.innerText].join()';
  expect(await page.evaluate(kept)).not.toContain(key);

  await waitFor('the key to be accepted', async () => (await callLatest(key)) !== 401);
  const socket = new WebSocket(`${streamUrl}/api/stream`, { headers: { 'x-api-key': key } });
  const frames: string[] = [];
  let closed: number | undefined;
  socket.on('message', (data) => frames.push(String(data)));
  socket.on('close', (code) => {
    closed = code;
  });
  await waitFor('the welcome', () => frames.some((frame) => frame.includes('"welcome"')));
  await page.getByRole('link', { name: 'Usage' }).click();
  await waitFor('the call to be counted', async () => {
    await page.getByRole('button', { name: 'Read again' }).click();
    return (await page.getByRole('cell', { name: 'GET /api/pills/latest' }).count()) > 0;
  });
  await page.reload();
  await page.getByRole('heading', { name: 'Usage' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'API keys' }).waitFor();
  await page.getByRole('button', { name: 'Revoke desk 4' }).click();
  await page.getByText('every call with').waitFor();
  await press(page, 'Revoke key', async () => (await page.getByText(/^Revoked/).count()) > 0);
  await waitFor('the socket to be closed', () => closed !== undefined);
  expect(closed).toBe(4502);
  await waitFor('the key to be refused', async () => (await callLatest(key)) === 401);
});

test('a form keeps its content while its session ends', async () => {
  const customer = await api.customer('keeper', 'pro');
  const { page } = await pages.open('/app/settings/api-keys');
  await pages.signIn(page, customer.email, 'API keys');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name').fill('kept name');
  await page.context().clearCookies();
  await press(page, 'Create', hasHeading(page, 'Sign in again'));
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Sign in', hasHeading(page, 'Your new key'));
  await page.getByText('kept name').first().waitFor();
});

test('a socket is listed, and closed from the page', async () => {
  const customer = await api.customer('sockets', 'pro');
  const made = await customer.send('POST', '/api/keys', { name: 'feed', scopes: ['stream'] });
  const headers = { 'x-api-key': made.body.key };
  await waitFor('the socket to be admitted', async () => {
    const socket = new WebSocket(`${streamUrl}/api/stream`, { headers });
    sockets.push(socket);
    const [outcome] = await Promise.race([
      once(socket, 'message').then(() => [true]),
      once(socket, 'close').then(() => [false]),
    ]);
    return outcome;
  });
  const closed = once(sockets.at(-1)!, 'close');
  const { page } = await pages.open('/app/streams');
  await pages.signIn(page, customer.email, 'Streams');
  const close = page.getByRole('button', { name: 'Close the socket of 127.0.0.1' });
  await close.waitFor();
  await close.click();
  expect((await closed)[0]).toBeGreaterThanOrEqual(4_000);
  await page.getByText('No socket is open.').waitFor();
  await page.getByText(`${streamUrl}/api/stream`, { exact: true }).waitFor();
});

test('the frame inspector shows what a socket carries, pauses, sends, and says why it closed', async () => {
  const customer = await api.customer('inspector', 'pro');
  const { page } = await pages.open('/app/streams/frames?symbols=7203.T');
  await pages.signIn(page, customer.email, 'Frame inspector');
  const typeCell = (name: string) => page.getByRole('cell', { name, exact: true }).first();
  await press(page, 'Connect', async () => (await typeCell('subscribed').count()) > 0);
  await typeCell('welcome').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  // A heartbeat, at the latest. The chaos feed would close the socket on a slow machine.
  await page.getByText(/\d since the pause/).waitFor();
  const rows = page.locator('.frames tbody tr');
  const shown = await rows.count();
  await page.getByLabel('Send a frame').fill('{"op":"ping","id":"7","t":42}');
  await page.getByRole('button', { name: 'Send' }).click();
  expect(await rows.count()).toBe(shown);
  await page.getByRole('button', { name: 'Go on' }).click();
  await typeCell('pong').waitFor();
  await page.getByLabel('Show only').selectOption('pong');
  expect(await page.locator('.frames tbody').innerText()).toMatch(/"id":"7","t":42/);
  await page.getByLabel('Show only').selectOption('');
  const { body } = await customer.send('GET', '/api/stream/sessions');
  await customer.send('DELETE', `/api/stream/sessions/${body.data[0].session}`);
  await page.getByText(/^Closed with 4504/).waitFor();
  await page.getByText('The socket is closed.').waitFor();
});

test('who is signed in watches the market without a key; others are asked for one', async () => {
  const customer = await api.customer('watcher', 'pro');
  const { page } = await pages.open('/');
  await page.getByLabel('API key').waitFor();
  await page.getByRole('link', { name: 'Sign in', exact: true }).click();
  await pages.signIn(page, customer.email);
  await page.goto(`${api.base}/`);
  await waitFor('the connection', async () => LIVE.test(await stateOf(page)));
  await page.getByRole('link', { name: 'Console', exact: true }).click();
  await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor();
});

test('a page whose code cannot be read says so, and is read after a reload', async () => {
  const customer = await api.customer('updated', 'pro');
  const { page } = await pages.open('/app/sign-in');
  await page.route('**/assets/usage-*.js', (route) => route.abort());
  await pages.signIn(page, customer.email);
  await page.getByRole('link', { name: 'Usage', exact: true }).click();
  await page.getByText('This page could not be read.').waitFor();
  await page.unrouteAll();
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('heading', { name: 'Usage' }).waitFor();
});

test('what the first page needs has at most 150 KB, compressed', async () => {
  const { page } = await pages.open('/app/sign-in');
  const needed = new Set<string>();
  page.on('response', (answer) => answer.ok() && needed.add(answer.url()));
  await page.reload({ waitUntil: 'networkidle' });
  expect(needed.size).toBeGreaterThan(4);
  // Asked for again, since the browser may have dropped the body of an answer.
  const sizes = await Promise.all(
    [...needed].map(async (url) => {
      const { body } = await request(url);
      return gzipSync(await body.bytes()).length;
    }),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150 * 1_024);
});

test('every file of the page is served', async () => {
  const folder = path.join(packageRoot, 'dist/console/assets');
  const files = await readdir(folder);
  expect(files.length).toBeGreaterThan(30);
  for (const file of files) {
    const { statusCode, body } = await request(`${api.base}/console/assets/${file}`);
    await body.dump();
    expect(statusCode, file).toBe(200);
  }
});

test.each(LOOKS)('no page has a fault of accessibility: %s, %i px', async (scheme, width) => {
  const isPhone = width < 760;
  const customer = await api.customer(`axe-${scheme}`, 'basic');
  const { page, complaints } = await pages.open('/app/sign-in', {
    scheme,
    width,
    ...(isPhone && { isPhone }),
  });
  const check = (title: string) => checkPage(page, title, scheme);
  await check('Sign in');
  await pages.signIn(page, customer.email);
  await check('Overview');
  for (const title of [
    'Usage',
    'Streams',
    'Webhooks',
    'Plans',
    'Status',
    'Support',
    'Live',
    'Generator',
    'Profile',
    'Security',
    'Billing',
    'Account',
    'API keys',
  ]) {
    if (isPhone) await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: title, exact: true }).click();
    await check(title);
  }
  await page.getByRole('button', { name: 'Create key' }).click();
  await check('Create key');
  await page.goto(`${api.base}/app/streams/frames`);
  await check('Frame inspector');
  for (const [entry, title] of [
    ['sign-up', 'Sign up'],
    ['forgotten', 'Forgotten password'],
    ['verify', 'Verify your address'],
    ['reset', 'New password'],
  ]) {
    await page.goto(`${api.base}/app/${entry}`);
    await check(title!);
  }
  // The browser itself reports that nobody is signed in (401), and that Basic has no webhooks (403).
  expect(complaints.filter((text) => !/status of 40[13]/.test(text))).toEqual([]);
});
