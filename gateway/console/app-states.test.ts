import type { Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import { waitFor } from '../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../api/testing/account-api.ts';
import { PASSWORD } from '../api/testing/customer.ts';
import { hasHeading, openAppPages } from './testing/app-pages.ts';
import { checkState } from './testing/axe.ts';

/**
 * Every page in every state, in a real browser: loading and failures are made at the network, states
 * of the account in the database, states of the platform in its own answer.
 */
let api: AccountApi;
let db: Database;
let pages: Awaited<ReturnType<typeof openAppPages>>;

beforeAll(async () => {
  pages = await openAppPages(() => api.base, PASSWORD);
  api = await openAccountApi({ STREAM_URL: 'ws://127.0.0.1:1' });
  db = openTestDatabase(api.namespace);
});

afterEach(() => pages.closePages());

afterAll(async () => {
  await pages?.close();
  await db?.destroy();
  await api?.close();
});

/** Pages that read something when they open. */
const PAGES = [
  ['/app', 'Overview'],
  ['/app/live', 'Live'],
  ['/app/symbols', 'Symbols'],
  ['/app/symbol?symbol=7203.T', '7203.T'],
  ['/app/analytics', 'Analytics'],
  ['/app/analytics?view=confidence', 'Analytics'],
  ['/app/analytics?view=outliers&symbol=7203.T', 'Analytics'],
  ['/app/analytics?view=cadence&symbol=7203.T', 'Analytics'],
  ['/app/analytics?view=correlation&symbols=7203.T,6758.T', 'Analytics'],
  ['/app/streams', 'Streams'],
  ['/app/webhooks', 'Webhooks'],
  ['/app/webhooks/whe_k3yq7v2bqm9c', 'Endpoint'],
  ['/app/usage', 'Usage'],
  ['/app/plans', 'Plans'],
  ['/app/status', 'Status'],
  ['/app/support', 'Support'],
  ['/app/support/tkt_k3yq7v2bqm9c', 'Ticket'],
  ['/app/docs', 'Docs'],
  ['/app/docs?view=stream', 'Docs'],
  ['/app/generator', 'Generator'],
  ['/app/settings/api-keys', 'API keys'],
  ['/app/settings/profile', 'Profile'],
  ['/app/settings/security', 'Security'],
  ['/app/settings/billing', 'Billing'],
  ['/app/settings/billing/1', 'Invoice'],
  ['/app/settings/account', 'Account'],
] as const;

/** All reads of pages; without the session nobody would be on a page. */
const isRead = ({ pathname }: URL) =>
  pathname !== '/api/session' && /^\/(api|console\/market|openapi|asyncapi)/.test(pathname);

const PROBLEM = {
  code: 'overloaded',
  title: 'Too many requests at once',
  detail: 'Send the request again in a second.',
  request_id: 'req_of_the_test',
};

test('every page has a skeleton while it loads, then a failure with what to do and its request', async () => {
  const customer = await api.customer('patient', 'institutional');
  const { page } = await pages.open('/app/settings/security');
  await pages.signIn(page, customer.email, 'Security');
  const held: Route[] = [];
  let isHeld = true;
  await page.route(isRead, (route) => (isHeld ? void held.push(route) : fail(route)));
  for (const [path, title] of PAGES) {
    isHeld = true;
    await page.goto(`${api.base}${path}`);
    await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor();
    await page.locator('.page .skeleton').first().waitFor();
    await checkState(page, `${path}, loading`);
    isHeld = false;
    for (const route of held.splice(0)) await fail(route);
    await waitFor(`the failure of ${path}`, async () => {
      const text = await page.locator('.page').innerText();
      return (/req_of_the_test/.test(text) && /Too many requests at once/.test(text)) || text;
    });
    await checkState(page, `${path}, failed`);
  }
});

const fail = (route: Route) =>
  route
    .fulfill({ status: 503, contentType: 'application/problem+json', json: PROBLEM })
    // The page that asked may be gone.
    .catch(() => undefined);

test('data takes the place of its skeleton: nothing moves', async () => {
  const customer = await api.customer('steady', 'pro');
  const { page } = await pages.open('/app/settings/security');
  await pages.signIn(page, customer.email, 'Security');
  await page.addInitScript(`
    globalThis.shift = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
    }).observe({ type: 'layout-shift', buffered: true });`);
  const shifts: Record<string, number> = {};
  for (const [path, title] of PAGES) {
    await page.goto(`${api.base}${path}`);
    await hasHeading(page, title)();
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    await page.waitForLoadState('networkidle');
    shifts[path] = Number(await page.evaluate('shift'));
  }
  // The limit of a good page by the Web Vitals.
  expect(Object.entries(shifts).filter(([, shift]) => shift > 0.1)).toEqual([]);
});

test('a page that loses its connection keeps its data, says so, and goes on by itself', async () => {
  const customer = await api.customer('traveller', 'pro');
  const { page } = await pages.open('/app/usage');
  await pages.signIn(page, customer.email, 'Usage');
  await page.getByText('Calls today').waitFor();
  await page.context().setOffline(true);
  await page.getByText('Offline.', { exact: true }).waitFor();
  await page.getByText('Calls today').waitFor();
  await checkState(page, 'offline');
  // Another page has nothing to show: it says what to do, and reads when the connection is back.
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  await page.getByText('The platform does not answer').first().waitFor();
  await checkState(page, 'offline, without data');
  await page.context().setOffline(false);
  await page.getByText('Live keys').waitFor();
  await page.getByText('Offline.', { exact: true }).waitFor({ state: 'detached' });
});

/** Pages with a link, one after the other: each must show the text, without a fault of access. */
async function saidOnEveryPage(page: Page, text: string): Promise<void> {
  const navigation = page.getByRole('navigation', { name: 'Console' });
  for (const name of await navigation.getByRole('link').allInnerTexts()) {
    await navigation.getByRole('link', { name, exact: true }).click();
    await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor();
    await page.getByText(text, { exact: true }).waitFor();
    await checkState(page, `${name}: ${text}`);
  }
}

const STATUS = { components: {}, notices: [], latency: { window_s: 60, count: 0 } };

test.each([
  ['Behind.', { log: { state: 'down' }, accounts: { state: 'up' } }],
  ['Read-only.', { log: { state: 'up' }, accounts: { state: 'down' } }],
])('a platform that is not whole is said on every page: %s', async (text, components) => {
  const customer = await api.customer(text.slice(0, 4).toLowerCase(), 'pro');
  const { page } = await pages.open('/app/sign-in');
  const body = { ...STATUS, components, status: 'degraded', last_received_at: null };
  const latency = { ...STATUS.latency, p50_ms: null, p99_ms: null };
  await page.route('**/api/status', (route) =>
    route.fulfill({ json: { ...body, latency, time: new Date().toISOString() } }),
  );
  await pages.signIn(page, customer.email);
  await saidOnEveryPage(page, text);
});

test('a quota that is used up is said on every page, with the time of its end', async () => {
  const customer = await api.customer('busy', 'basic');
  const { id, limits } = (await customer.send('GET', '/api/account')).body;
  await db
    .insertInto('usage_days')
    .values({
      account_id: id,
      day: new Date().toISOString().slice(0, 10),
      used: limits.calls_per_day,
    })
    .onConflict((on) =>
      on.columns(['account_id', 'day']).doUpdateSet({ used: limits.calls_per_day }),
    )
    .execute();
  const { page } = await pages.open('/app/sign-in');
  await pages.signIn(page, customer.email);
  await saidOnEveryPage(page, 'Quota used up.');
  // A page that needs a call says why it has no data.
  await page.getByRole('link', { name: 'Symbols', exact: true }).click();
  await page.locator('.page .failure').first().waitFor();
});

test('a suspended account is told so on every page, and whom to write to', async () => {
  const customer = await api.customer('suspended', 'pro');
  const { id } = (await customer.send('GET', '/api/account')).body;
  const { page } = await pages.open('/app/sign-in');
  await pages.signIn(page, customer.email);
  await db
    .updateTable('accounts')
    .set({ status: 'suspended', suspended_reason: 'operator' })
    .where('id', '=', id)
    .execute();
  await waitFor('the suspension', async () => {
    return (await customer.send('GET', '/api/account')).body.suspension !== null;
  });
  await page.reload();
  await saidOnEveryPage(page, 'Suspended.');
});

test('a payment that is overdue is said on every page', async () => {
  const customer = await api.customer('late', 'pro');
  const { id } = (await customer.send('GET', '/api/account')).body;
  await db
    .updateTable('subscriptions')
    .set({ status: 'past_due', past_due_since: new Date() })
    .where('account_id', '=', id)
    .execute();
  await waitFor('the overdue payment', async () => {
    return (await customer.send('GET', '/api/account')).body.subscription === 'past_due';
  });
  const { page } = await pages.open('/app/sign-in');
  await pages.signIn(page, customer.email);
  await saidOnEveryPage(page, 'Payment overdue.');
});

test('a new customer sees the next step on every page that has nothing to show', async () => {
  const customer = await api.customer('fresh');
  const { page } = await pages.open('/app/sign-in');
  await pages.signIn(page, customer.email);
  await page.getByRole('list', { name: 'Next steps' }).waitFor();
  for (const [link, next] of [
    ['Live', 'See the plans'],
    ['Symbols', 'See the plans'],
    ['Analytics', 'See the plans'],
    ['Streams', 'See the plans'],
    ['Webhooks', 'Choose Pro or Institutional'],
    ['API keys', 'Choose a plan'],
    ['Billing', 'Choose a plan'],
  ] as const) {
    await page.getByRole('link', { name: link, exact: true }).first().click();
    await page.getByRole('heading', { name: link, exact: true, level: 1 }).waitFor();
    await page.locator('.page').getByRole('link', { name: next }).first().waitFor();
    await checkState(page, `${link}, empty`);
  }
});

test('nothing is animated for who asked for less motion', async () => {
  const customer = await api.customer('calm', 'pro');
  const { page } = await pages.open('/app/symbols');
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await pages.signIn(page, customer.email, 'Symbols');
  for (const path of ['/app/symbol?symbol=7203.T', '/app/live', '/app/usage']) {
    await page.goto(`${api.base}${path}`);
    await page.locator('h1').waitFor();
    expect(await page.evaluate('document.getAnimations().length')).toBe(0);
  }
});
