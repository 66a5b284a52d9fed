import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../../domain/access/id.ts';
import { readPepper } from '../../../domain/access/pepper.ts';
import { createTestBilling } from '../../../domain/accounts/test-billing.ts';
import { blockedBehind, type HeldRows, holdRows } from '../../../testing/blocked.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type Customer, PASSWORD } from '../testing/customer.ts';
import {
  ENDPOINT_SETTINGS,
  openWebhookApi,
  type WebhookApi,
} from '../webhooks/testing/webhook-api.ts';

/** Requests at once; ten passwords may be tried. */
const AT_ONCE = 8;

let api: WebhookApi;
let alice: Customer;
let bob: Customer;
let bobsKey: string;
const ids: Record<string, string> = {};

beforeAll(async () => {
  api = await openWebhookApi();
  alice = await api.customerOf('basic');
  bob = await api.customerOf('basic');
  const begun = await alice.send('POST', '/api/subscription/checkout', { tier: 'pro' });
  ids.checkout = begun.body.checkout_id;
  ids.account = (await alice.send('GET', '/api/account')).body.id;
  const { db } = api;
  const own = db.updateTable('subscriptions').set({ tier: 'institutional' });
  await own.where('account_id', '=', ids.account!).execute();
  await waitFor('the tier', async () => {
    return (await alice.send('GET', '/api/account')).body.tier === 'institutional';
  });
  ids.key = (await alice.send('POST', '/api/keys', { name: 'a' })).body.record.id;
  bobsKey = (await bob.send('POST', '/api/keys', { name: 'b' })).body.record.id;
  ids.endpoint = (await api.createEndpoint(alice)).endpoint.id;
  const stream = await alice.send('POST', '/api/manager/streams', { label: 'Tokyo' });
  ids.stream = stream.body.name;
  const messages = [1, 2].map((number) => ({
    ...{ endpoint_id: ids.endpoint!, message_id: `msg_${number}`, event_type: 'pill.published' },
    ...{ body: '{}', pills: 1, status: 'failed' as const },
    ...{ occurred_at: new Date(), next_at: new Date(), settled_at: new Date() },
  }));
  await db.insertInto('webhook_deliveries').values(messages).execute();
  const enabled = db.updateTable('webhook_endpoints').set({ status: 'enabled' });
  await enabled.where('id', '=', ids.endpoint!).execute();
  // The first counted call of a day inserts a row that refers to the account, over a connection of its
  // own, and would wait for the account's row as well.
  await sql`INSERT INTO usage_days (account_id, day)
    VALUES (${ids.account}, (now() AT TIME ZONE 'UTC')::date) ON CONFLICT DO NOTHING`.execute(db);
});

afterAll(() => api?.close());

const ACCOUNT = () => sql`SELECT FROM accounts WHERE id = ${ids.account} FOR UPDATE`;
const MESSAGES = () => sql`
  SELECT FROM webhook_deliveries WHERE endpoint_id = ${ids.endpoint} FOR UPDATE`;

/** Requests of one account that wait for its rows. `{…}` stands for an id. */
const ROUTES = [
  ['POST', '/api/keys', { name: 'x' }, ACCOUNT],
  ['PATCH', '/api/keys/{key}', { name: 'x' }, ACCOUNT],
  ['POST', '/api/keys/{key}/rotate', {}, ACCOUNT],
  ['DELETE', '/api/keys/{key}', undefined, ACCOUNT],
  ['POST', '/api/subscription/checkout', { tier: 'pro' }, ACCOUNT],
  ['PATCH', '/api/subscription', { tier: 'basic' }, ACCOUNT],
  ['POST', '/api/subscription/cancel', { at: 'period_end' }, ACCOUNT],
  ['POST', '/api/subscription/resume', undefined, ACCOUNT],
  ['POST', '/api/billing/test/checkouts/{checkout}', { outcome: 'paid' }, ACCOUNT],
  ['POST', '/api/support', { subject: 'a', message: 'b' }, ACCOUNT],
  ['POST', '/api/manager/streams', { label: 'x' }, ACCOUNT],
  ['POST', '/api/manager/streams/{stream}/rotate', {}, ACCOUNT],
  ['DELETE', '/api/manager/streams/{stream}', undefined, ACCOUNT],
  ['POST', '/api/webhooks', ENDPOINT_SETTINGS, ACCOUNT],
  ['PATCH', '/api/webhooks/{endpoint}', { symbols: ['7203.T'] }, ACCOUNT],
  ['POST', '/api/webhooks/{endpoint}/rotate-secret', {}, ACCOUNT],
  ['POST', '/api/webhooks/{endpoint}/recover', { since: '2026-01-01T00:00:00Z' }, MESSAGES],
  ['POST', '/api/webhooks/{endpoint}/deliveries/msg_1/resend', undefined, MESSAGES],
  ['DELETE', '/api/webhooks/{endpoint}', undefined, MESSAGES],
  ['DELETE', '/api/account', { password: PASSWORD }, ACCOUNT],
] as const;

/** Locks rows until the test ends: those of a failed test would hold up all others. */
async function hold(rows: ReturnType<typeof ACCOUNT>): Promise<HeldRows> {
  const held = await holdRows(api.db, rows);
  onTestFinished(held.release);
  return held;
}

/** Sends while the rows are locked. @returns the answers, and the most connections that waited */
async function sendToLocked<T>(held: HeldRows, count: number, send: () => Promise<T>) {
  let isOver = false;
  let blockedMax = 0;
  const answers = Promise.all(Array.from({ length: count }, send)).finally(() => {
    isOver = true;
  });
  await waitFor('all answers', async () => {
    blockedMax = Math.max(blockedMax, await blockedBehind(held));
    return isOver;
  });
  return { answers: await answers, blockedMax };
}

describe('many requests of an account whose rows are locked hold one connection:', () => {
  test.each(ROUTES)('%s %s', async (method, path, body, rows) => {
    const to = path.replace(/\{(\w+)\}/, (_, name) => ids[name]!);
    const held = await hold(rows());
    const sent = sendToLocked(held, AT_ONCE, () => alice.send(method, to, body));
    await waitFor('a request to wait', async () => (await blockedBehind(held)) > 0);
    const other = await bob.send('PATCH', `/api/keys/${bobsKey}`, { name: 'c' });
    expect(other.status).toBe(200);
    const { answers, blockedMax } = await sent;
    await held.release();
    expect(blockedMax).toBe(1);
    for (const { status, headers } of answers) {
      expect([status, Number(headers['retry-after'])]).toEqual([503, 1]);
    }
  });

  test('POST /api/billing/events/test', async () => {
    const pepper = readPepper(api.namespace.env.KEY_PEPPER_FILE!);
    const billing = createTestBilling({ pepper, pageUrl: 'http://x.invalid' });
    const held = await hold(ACCOUNT());
    const { answers, blockedMax } = await sendToLocked(held, AT_ONCE, async () => {
      const event = { provider: 'test', eventId: newId('evt'), type: 'payment.failed' } as const;
      const signed = billing.sign({ ...event, accountId: ids.account!, at: new Date() });
      const url = `${api.base}/api/billing/events/test`;
      const answer = await request(url, { method: 'POST', ...signed });
      await answer.body.dump();
      return answer.statusCode;
    });
    await held.release();
    expect([blockedMax, new Set(answers)]).toEqual([1, new Set([503])]);
  });

  test('POST /api/session', async () => {
    const held = await hold(ACCOUNT());
    const { answers, blockedMax } = await sendToLocked(held, 6, () => alice.signIn());
    await held.release();
    expect([blockedMax, new Set(answers.map(({ status }) => status))]).toEqual([1, new Set([503])]);
  });
});

test('afterwards every change is made, one after another', async () => {
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      alice.send('PATCH', `/api/keys/${ids.key}`, { name: `name ${index}` }),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});
