import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { openWebhookReceiver } from '../../pipelines/webhooks/testing/webhook-receiver.ts';
import { createClient } from '../../sdk/index.ts';
import { startIngest } from '../../testing/ingest-process.ts';
import { makePill } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { createPoster } from '../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { makePython } from '../../testing/python.ts';
import { waitFor } from '../../testing/wait.ts';
import { openAccountApi } from '../api/testing/account-api.ts';
import { PASSWORD, tokenFor } from '../api/testing/customer.ts';
import { hasHeading, openAppPages, press } from './testing/app-pages.ts';

/** The whole way of a customer, in a real browser and with both clients; each test goes on from the last. */
let stack: Awaited<ReturnType<typeof openStack>>;
let pages: Awaited<ReturnType<typeof openAppPages>>;
let page: Page;
let key: string;
let python: string;
const EMAIL = 'journey@example.com';
const SYMBOL = '7203.T';

beforeAll(async () => {
  const made = await makePython(path.join(packageRoot, 'sdk/python/requirements.txt'));
  if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
  ({ python } = made);
  pages = await openAppPages(() => stack.api.base, PASSWORD);
  stack = await openStack();
  await stack.poster.post(makePill({ symbol: SYMBOL, gross_spread_percent: 0.1 }));
});

afterAll(async () => {
  await pages?.closePages();
  await pages?.close();
  await stack?.close();
});

/** Every process that the console shows something of, in a namespace of their own. */
async function openStack() {
  const port = String(await getPort());
  const streamUrl = `ws://127.0.0.1:${port}`;
  const receiver = await openWebhookReceiver();
  const api = await openAccountApi({ STREAM_URL: streamUrl, WEBHOOK_ALLOW_LOOPBACK: 'true' });
  const env = { ...api.namespace.env, STREAM_PORT: port, WEBHOOK_ALLOW_LOOPBACK: 'true' };
  const startStream = () => startProcess('gateway/stream/main.js', [], env);
  let stream = await startStream();
  const ingest = await startIngest(api.namespace);
  const others: TestProcess[] = [ingest.process];
  // One after another, since each start takes a second of a core.
  for (const processor of ['latest', 'analytics', 'webhooks']) {
    others.push(await startProcess('pipelines/main.js', [processor], env));
  }
  await Promise.all([stream, ...others].map((process) => process.ready()));
  const poster = createPoster(ingest.url);
  return {
    api,
    receiver,
    streamUrl,
    poster,
    killStream: () => stream.kill(),
    async restartStream(): Promise<void> {
      stream = await startStream();
      await stream.ready();
    },
    async close(): Promise<void> {
      await poster.close();
      await Promise.all([stream, ...others].map((process) => process.stop()));
      await api.close();
      await receiver.close();
    },
  };
}

const open = async (title: string) => {
  await page.getByRole('link', { name: title, exact: true }).first().click();
  await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor();
};

/** Calls of today, as the page of usage shows them. */
async function callsShown(): Promise<number> {
  await page.getByRole('button', { name: 'Read again' }).click();
  const text = await page.locator('.facts dd').first().innerText();
  return Number(text.split(' ')[0]!.replace(',', ''));
}

test('sign up, the link of the mail, a plan, a key', async () => {
  ({ page } = await pages.open('/app/sign-up'));
  await page.getByLabel('E-mail').fill(EMAIL);
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Create account', hasHeading(page, 'Check your mail'));
  await page.goto(
    `${stack.api.base}/app/verify#${await tokenFor(stack.api.outbox, EMAIL, 'Verify')}`,
  );
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Verify', hasHeading(page, 'Address verified'));
  await page.getByRole('link', { name: 'Continue to the console' }).click();
  await pages.signIn(page, EMAIL);
  await page.getByRole('link', { name: 'Choose a plan' }).click();
  const toPay = page.getByText('To pay now');
  await press(page, 'Choose Pro API', async () => (await toPay.count()) > 0);
  await press(page, 'Pay (test)', hasHeading(page, 'Plan in effect'));
  await page.getByRole('link', { name: 'create an API key' }).click();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name').fill('desk 4');
  await press(page, 'Create', hasHeading(page, 'Your new key'));
  key = await page.locator('.copyable code').first().innerText();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await open('Billing');
  await page.getByRole('link', { name: 'TEST-0001' }).click();
  await page.getByText('no money moves', { exact: false }).first().waitFor();
  await page.getByRole('cell', { name: '$99.00' }).first().waitFor();
});

test('both clients use the key, and the usage rises by their calls', async () => {
  await open('Usage');
  const before = await callsShown();
  const { api, streamUrl } = stack;
  const client = createClient({ apiUrl: api.base, streamUrl, key });
  const read = await waitFor('the key to be accepted', () =>
    client.latest(SYMBOL).catch((error) => String(error.code)),
  );
  expect((read as { data: object }).data).toMatchObject({ symbol: SYMBOL });
  const program = `import os
from pillole import Client
client = Client(os.environ["KEY"], api_url=os.environ["API"], stream_url=os.environ["STREAM"])
print(client.latest("${SYMBOL}").data.symbol)`;
  const { stdout } = await promisify(execFile)(python, ['-c', program], {
    env: {
      ...{ PATH: process.env.PATH, PYTHONPATH: path.join(packageRoot, 'sdk/python/src') },
      ...{ KEY: key, API: api.base, STREAM: streamUrl },
    },
    timeout: 120_000,
  });
  expect(stdout.trim()).toBe(SYMBOL);
  await waitFor('the usage to rise', async () => {
    const shown = await callsShown();
    return shown >= before + 2 || `${before} ${shown}`;
  });
  await page.getByRole('cell', { name: /^desk 4/ }).waitFor();
});

test('the chart moves while pills are posted; its state is in the address; two tabs', async () => {
  await page.goto(`${stack.api.base}/app/symbol?symbol=${SYMBOL}&interval=1s`);
  const chart = page.getByRole('img', { name: /bars of 1s$/ });
  await chart.waitFor();
  await page.getByRole('button', { name: 'Go live' }).click();
  await page.getByText('Live: each pill as it arrives.').waitFor();
  // What the eye sees: the pixels of the chart.
  const drawn = () => page.evaluate('document.querySelector(".chart canvas").toDataURL()');
  const before = await drawn();
  let spread = 0.1;
  await waitFor('the chart to move', async () => {
    spread += 0.01;
    await stack.poster.post(makePill({ symbol: SYMBOL, gross_spread_percent: spread }));
    return (await drawn()) !== before;
  });
  const address = page.url();
  expect(address).toContain('interval=1s');
  expect(address).toContain('live=1');
  await page.reload();
  await page.getByText('Live: each pill as it arrives.').waitFor();
  await page.getByRole('button', { name: '1s', exact: true, pressed: true }).waitFor();

  const second = await page.context().newPage();
  await second.goto(`${stack.api.base}/app/live?q=7203`);
  await second.getByRole('link', { name: SYMBOL, exact: true }).waitFor();
  await stack.poster.post(makePill({ symbol: SYMBOL, gross_spread_percent: 0.7777 }));
  await waitFor('both tabs to have the pill', async () => {
    const [one, other] = await Promise.all([
      page.locator('.facts dd.flash').innerText(),
      second.locator('.market .figure').first().innerText(),
    ]);
    return (one === '0.7777 %' && other === '0.7777') || `${one} ${other}`;
  });
  await second.close();
  await open('Usage');
  await page.goBack();
  await page.getByText('Live: each pill as it arrives.').waitFor();
  expect(page.url()).toBe(address);
});

test('a stream that dies is said, and comes back by itself', async () => {
  await open('Live');
  const state = page.locator('.live .connection');
  await waitFor('live', async () => /^Live/.test(await state.innerText()));
  await stack.killStream();
  await waitFor('the loss', async () => /^Reconnecting/.test(await state.innerText()));
  // The last data stays, marked as old.
  await page.getByText(/^As of /).waitFor();
  await page.getByRole('link', { name: SYMBOL, exact: true }).waitFor();
  await stack.restartStream();
  await waitFor('live again', async () => {
    const text = await state.innerText();
    return /^Live/.test(text) || text;
  });
  await stack.poster.post(makePill({ symbol: SYMBOL, gross_spread_percent: 0.6543 }));
  const figure = page.locator('.market .figure').first();
  await waitFor('the next pill', async () => (await figure.innerText()) === '0.6543');
});

test('a webhook: challenge, delivery with its body, resent', async () => {
  const { receiver, poster } = stack;
  await open('Webhooks');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  receiver.answerWith('/desk', ({ text }) => ({ status: 200, body: text }));
  const url = `${receiver.url}/desk`;
  await page.getByLabel('Address').fill(url);
  await press(page, 'Create', hasHeading(page, 'Signing secret'));
  receiver.trust('/desk', await page.locator('.copyable code').innerText());
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('link', { name: url }).click();
  await waitFor('the challenge to be answered', async () => {
    await page.reload();
    await page.getByRole('button', { name: 'Send test' }).waitFor();
    return (await page.getByText('Enabled', { exact: true }).count()) > 0;
  });
  await poster.post(makePill({ symbol: SYMBOL, gross_spread_percent: 0.3333 }));
  const posted = () => receiver.at('/desk').filter(({ type }) => type.startsWith('pill.'));
  await waitFor('the delivery', () => posted().length > 0);
  expect(posted()[0]).toMatchObject({ isVerified: true });
  await page.getByLabel('Outcome').selectOption('delivered');
  await page.getByLabel('Code').selectOption('200');
  await page.getByLabel(/^Time/).selectOption('1h');
  const id = posted()[0]!.id;
  const shows = page.getByRole('button', { name: `Show ${id}, attempt 1` });
  await waitFor('the attempt to be listed', async () => {
    if ((await shows.count()) > 0) return true;
    await page.reload();
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    return false;
  });
  // The filter survives a reload, since it is in the address.
  expect(new URL(page.url()).searchParams.get('code')).toBe('200');
  await shows.click();
  await page.getByText('"gross_spread_percent": 0.3333').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: `Resend ${id}, attempt 1` }).click();
  await waitFor('the same message again', () => posted().filter((one) => one.id === id).length > 1);
});

test('a revoked key closes its sockets and is refused', async () => {
  const { api, streamUrl } = stack;
  const stream = createClient({ apiUrl: api.base, streamUrl, key }).stream({ symbols: [SYMBOL] });
  let isOpen = false;
  let closeCode: number | undefined;
  stream.on('open', () => {
    isOpen = true;
  });
  stream.on('closed', ({ error }) => {
    closeCode = error?.closeCode;
  });
  await waitFor('the socket', () => isOpen);
  await open('API keys');
  await page.getByRole('button', { name: 'Revoke desk 4' }).click();
  await page.getByText('every call with').waitFor();
  await page.getByText(/1 open now/).waitFor();
  await press(page, 'Revoke key', async () => (await page.getByText(/^Revoked/).count()) > 0);
  await waitFor('the socket to be closed', () => closeCode !== undefined);
  expect(closeCode).toBe(4502);
  await waitFor('the key to be refused', async () => {
    const headers = { 'x-api-key': key };
    const answer = await fetch(`${api.base}/api/pills/latest?symbol=${SYMBOL}`, { headers });
    return answer.status === 401 || `${answer.status}`;
  });
});
