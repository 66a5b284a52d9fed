import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openWebhookReceiver } from '../../pipelines/webhooks/testing/webhook-receiver.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { PASSWORD } from '../api/testing/customer.ts';
import { openWebhookApi, type WebhookApi } from '../api/webhooks/testing/webhook-api.ts';
import { hasHeading, openAppPages, press } from './testing/app-pages.ts';

/** Webhooks from the first endpoint to a message that is sent again, in a real browser. */
let api: WebhookApi;
let dispatcher: TestProcess;
let receiver: Awaited<ReturnType<typeof openWebhookReceiver>>;
let pages: Awaited<ReturnType<typeof openAppPages>>;

beforeAll(async () => {
  pages = await openAppPages(() => api.base, PASSWORD);
  receiver = await openWebhookReceiver();
  api = await openWebhookApi();
  const env = { ...api.namespace.env, WEBHOOK_ALLOW_LOOPBACK: 'true' };
  dispatcher = await startProcess('pipelines/main.js', ['webhooks'], env);
  const sink = await startProcess('pipelines/main.js', ['analytics'], api.namespace.env);
  await Promise.all([dispatcher.ready(), sink.ready()]);
  sinks.push(sink);
});
const sinks: TestProcess[] = [];

afterEach(() => pages.closePages());

afterAll(async () => {
  await pages?.close();
  await Promise.all([dispatcher, ...sinks].map((one) => one?.stop()));
  await api?.close();
  await receiver?.close();
});

test('an endpoint is made, answers the challenge, gets a test, and is deleted', async () => {
  const customer = await api.customerOf('pro');
  const { page } = await pages.open('/app/webhooks');
  await pages.signIn(page, customer.email, 'Webhooks');
  await page.getByText('No endpoints yet.').waitFor();
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  const url = `${receiver.url}/desk`;
  receiver.answerWith('/desk', ({ text }) => ({ status: 200, body: text }));
  await page.getByLabel('Address').fill(url);
  await page.getByLabel('Symbols (optional)').fill('7203.T, 6758.T');
  await press(page, 'Create', hasHeading(page, 'Signing secret'));
  const secret = await page.locator('.copyable code').innerText();
  expect(secret).toMatch(/^whsec_/);
  receiver.trust('/desk', secret);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  expect(await page.evaluate('document.body.innerText')).not.toContain(secret);
  await page.getByRole('link', { name: url }).click();
  await waitFor('the endpoint to be enabled', async () => {
    await page.reload();
    await page.getByRole('heading', { name: 'Endpoint' }).waitFor();
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    return (await page.getByText('Enabled', { exact: true }).count()) > 0;
  });

  // What a receiver answers is shown as text, whatever it is.
  const html = '<img src=x onerror="document.title=\'broken\'">';
  receiver.answerWith('/desk', () => ({ status: 200, body: html }));
  const isSent = async () => (await page.getByText('Test message').count()) > 0;
  await press(page, 'Send test', isSent);
  await page
    .getByRole('cell', { name: /delivered 200/ })
    .first()
    .waitFor();
  await page.getByText(html).first().waitFor();
  await page.reload();
  await page.getByRole('img', { name: /^Attempts by hour/ }).waitFor();
  await page.getByText('As a table').click();
  await page.getByRole('columnheader', { name: 'Given up' }).waitFor();
  expect(await page.title()).toBe('Endpoint · pillole');
  const posted = () => receiver.at('/desk').filter(({ type }) => type === 'endpoint.test');
  // The first one was the challenge of the new endpoint.
  expect(posted()).toHaveLength(2);
  expect(posted()[1]).toMatchObject({ isVerified: true });
  await page
    .getByRole('button', { name: /^Resend / })
    .first()
    .click();
  await waitFor('the message to come again', () => posted().length > 2);
  expect(new Set(posted().map(({ id }) => id)).size).toBe(2);

  const noneGivenUp = page.getByText('No message of the last day was given up.');
  await press(page, 'Recover failed messages', async () => (await noneGivenUp.count()) > 0);
  await page.getByRole('button', { name: 'Replay', exact: true }).click();
  await page.getByLabel('Symbol', { exact: true }).fill('7203.T');
  await page.getByLabel('From').fill('2026-01-05T09:00');
  await page.getByLabel('To', { exact: true }).fill('2026-01-05T10:00');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Count messages' }).click();
  await page.getByText('0 pills in 0 messages. Nothing is queued yet.').waitFor();
  await dialog.getByRole('button', { name: 'Replay', exact: true }).click();
  await page.getByText('0 pills in 0 new messages.').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();

  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await press(page, 'Delete endpoint', hasHeading(page, 'Webhooks'));
  await page.getByText('No endpoints yet.').waitFor();
});
