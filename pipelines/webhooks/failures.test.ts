import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RETRY_WAITS_S } from '../../domain/webhooks/deliveries/retry-schedule.ts';
import { makePill } from '../../testing/pills.ts';
import { waitFor } from '../../testing/wait.ts';
import {
  openWebhookFixture,
  type TestEndpoint,
  type WebhookFixture,
} from './testing/webhook-fixture.ts';

let fixture: WebhookFixture;

beforeAll(async () => {
  fixture = await openWebhookFixture();
  await fixture.start({ WEBHOOK_TIMEOUT_MS: '3000' });
});

afterAll(() => fixture?.close());

const rowsOf = (endpoint: TestEndpoint) =>
  fixture.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .select(sql<number>`extract(epoch FROM next_at - now())::double precision`.as('due_s'))
    .where('endpoint_id', '=', endpoint.id)
    .orderBy('id')
    .execute();
const stateOf = (endpoint: TestEndpoint) =>
  fixture.db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('id', '=', endpoint.id)
    .executeTakeFirstOrThrow();
/** Waits until the one row of an endpoint has had this many attempts. */
const attempted = (endpoint: TestEndpoint, attempts: number) =>
  waitFor(`${attempts} attempts`, async () => {
    const [row] = await rowsOf(endpoint);
    return row?.attempts === attempts ? row : `${row?.attempts}`;
  });
/** Makes waiting messages due now, instead of waiting for hours. */
const makeDue = (endpoint: TestEndpoint) =>
  sql`UPDATE webhook_deliveries SET next_at = now() - interval '3 seconds'
    WHERE endpoint_id = ${endpoint.id} AND status = 'waiting'`.execute(fixture.db);
const logOf = async (endpoint: TestEndpoint, wanted: number) => {
  const { openClickHouse, customersDatabaseName } = await import(
    '../../lib/clickhouse/clickhouse-client.ts'
  );
  const clickhouse = openClickHouse({
    url: fixture.env.CLICKHOUSE_URL!,
    database: customersDatabaseName(fixture.namespace.name),
  });
  try {
    return await waitFor('the log of attempts', async () => {
      const result = await clickhouse.query({
        query: 'SELECT * FROM webhook_attempts WHERE endpoint_id = {id:String} ORDER BY at',
        query_params: { id: endpoint.id },
        format: 'JSONEachRow',
      });
      const lines = await result.json<Record<string, unknown>>();
      return lines.length >= wanted ? lines : `${lines.length} lines`;
    });
  } finally {
    await clickhouse.close();
  }
};

describe.concurrent('an attempt that fails', () => {
  test.each([
    ['500', { status: 500 }, 500, 'status'],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 302, 'redirect'],
    ['no answer in time', undefined, null, 'timeout'],
  ])('by %s is retried after 5 s, with the same id and body', async (_, answer, status, reason) => {
    const symbol = `${reason.toUpperCase()}.T`;
    const endpoint = await fixture.addEndpoint({ symbols: [symbol] });
    fixture.receiver.answerWith(endpoint.path, ({ count }) => (count === 0 ? answer : {}));
    await fixture.write([makePill({ symbol })]);
    const row = await waitFor('the row', async () => {
      const [kept] = await rowsOf(endpoint);
      return kept?.attempts === 1 && kept;
    });
    expect(row).toMatchObject({ last_status: status, last_reason: reason, status: 'waiting' });
    expect(row.due_s).toBeGreaterThan(0);
    expect(row.due_s).toBeLessThanOrEqual(5.5);
    await waitFor('the second attempt', () => fixture.receiver.at(endpoint.path).length === 2);
    const [first, second] = fixture.receiver.at(endpoint.path);
    expect(second!.atMs - first!.atMs).toBeGreaterThan(4_000);
    expect({ id: second!.id, text: second!.text }).toEqual({ id: first!.id, text: first!.text });
    expect(second!.isVerified).toBe(true);
    await waitFor('the row to be deleted', async () => (await rowsOf(endpoint)).length === 0);
    const lines = await logOf(endpoint, 2);
    expect(lines).toMatchObject([
      { attempt: 1, outcome: 'retry', status: status ?? 0, reason, body: first!.text },
      { attempt: 2, outcome: 'delivered', status: 204, reason: '', body: '' },
    ]);
    await waitFor('the recovery', async () => (await stateOf(endpoint)).failing_since === null);
  });

  test('is retried by the schedule; after the tenth attempt the message is stored as failed', async () => {
    const endpoint = await fixture.addEndpoint({ symbols: ['ALL.T'] });
    fixture.receiver.answerWith(endpoint.path, () => ({ status: 500, body: 'no <b>\u0000 luck' }));
    await fixture.write([makePill({ symbol: 'ALL.T' })]);
    // Only the first four waits follow real attempts: later, the breaker would rest too long for a
    // test.
    for (const [at, wait] of RETRY_WAITS_S.slice(0, 4).entries()) {
      const { due_s: dueS } = await attempted(endpoint, at + 1);
      expect(dueS).toBeGreaterThan(wait * 0.9 - 3);
      expect(dueS).toBeLessThanOrEqual(wait * 1.1);
      await sql`UPDATE webhook_endpoints SET resting_until = NULL WHERE id = ${endpoint.id}`.execute(
        fixture.db,
      );
      if (at < 3) await makeDue(endpoint);
    }
    await sql`UPDATE webhook_deliveries SET attempts = 9 WHERE endpoint_id = ${endpoint.id}`.execute(
      fixture.db,
    );
    await makeDue(endpoint);
    const row = await waitFor('the message to be given up', async () => {
      const [kept] = await rowsOf(endpoint);
      return kept?.status === 'failed' && kept;
    });
    expect(row).toMatchObject({ attempts: 10, last_status: 500 });
    expect(row.settled_at).not.toBeNull();
    const lines = await logOf(endpoint, 5);
    expect(lines.at(-1)).toMatchObject({ attempt: 10, outcome: 'failed' });
    expect(String(lines[0]!.answer)).toContain('luck');
  });

  test('with Retry-After is not retried before that time', async () => {
    const endpoint = await fixture.addEndpoint({ symbols: ['AFTER.T'] });
    fixture.receiver.answerWith(endpoint.path, () => ({
      status: 429,
      headers: { 'retry-after': '120' },
    }));
    await fixture.write([makePill({ symbol: 'AFTER.T' })]);
    const row = await attempted(endpoint, 1);
    expect(row.due_s).toBeGreaterThan(110);
    expect(row).toMatchObject({ last_status: 429, last_reason: 'too_many_requests' });
    await waitFor(
      'the endpoint to rest',
      async () => (await stateOf(endpoint)).resting_until !== null,
    );
    // Pills that arrive meanwhile are stored, and not attempted either.
    await fixture.write([makePill({ symbol: 'AFTER.T' })]);
    await waitFor('the second row', async () => (await rowsOf(endpoint)).length === 2);
    expect(fixture.receiver.at(endpoint.path).length).toBe(1);
  });

  test('with 410 disables the endpoint at once, and another endpoint gets the event', async () => {
    const other = await fixture.addEndpoint({ eventTypes: ['endpoint.disabled'] });
    const endpoint = await fixture.addEndpoint({
      symbols: ['GONE.T'],
      eventTypes: ['pill.published', 'endpoint.disabled'],
    });
    fixture.receiver.answerWith(endpoint.path, () => ({ status: 410 }));
    await fixture.write([makePill({ symbol: 'GONE.T' })]);
    const event = await waitFor('the event', () =>
      fixture.receiver.at(other.path).find(({ body }) => body.data.endpoint === endpoint.id),
    );
    expect(event.body).toMatchObject({
      type: 'endpoint.disabled',
      data: { reason: 'gone', last_status: 410, last_reason: 'gone' },
    });
    expect(event.isVerified).toBe(true);
    expect(await stateOf(endpoint)).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    expect(fixture.receiver.at(endpoint.path).length).toBe(1);
  });
});

test.concurrent('after five failures in a row an endpoint rests; once it answers, all waiting messages arrive', async () => {
  const endpoint = await fixture.addEndpoint({ symbols: ['REST.T'] });
  let isDown = true;
  fixture.receiver.answerWith(endpoint.path, () => ({ status: isDown ? 500 : 204 }));
  const cursors: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    cursors.push(...(await fixture.write([makePill({ symbol: 'REST.T' })])));
    await waitFor('the attempt', () => fixture.receiver.at(endpoint.path).length > n);
  }
  await waitFor(
    'the endpoint to rest',
    async () => (await stateOf(endpoint)).resting_until !== null,
  );
  const tried = fixture.receiver.at(endpoint.path).length;
  cursors.push(
    ...(await fixture.write(Array.from({ length: 40 }, () => makePill({ symbol: 'REST.T' })))),
  );
  // The messages are stored within about a second, joined.
  await waitFor('all pills to be stored', async () => {
    const rows = await rowsOf(endpoint);
    return rows.reduce((sum, { pills }) => sum + pills, 0) === cursors.length;
  });
  expect((await rowsOf(endpoint)).length).toBeLessThan(20);
  isDown = false;
  // The rest doubles as long as the endpoint fails.
  await fixture.waitForPills(endpoint.path, cursors, 240_000);
  expect(fixture.receiver.at(endpoint.path).length).toBeGreaterThan(tried);
  const seen = fixture.receiver.at(endpoint.path).filter(({ count }) => count >= tried);
  expect(seen.every(({ isVerified }) => isVerified)).toBe(true);
  await waitFor('no waiting messages', async () => (await rowsOf(endpoint)).length === 0);
  await waitFor('the recovery', async () => (await stateOf(endpoint)).failing_since === null);
});

test.concurrent('a pill older than max_age_s is listed as expired, not posted', async () => {
  const endpoint = await fixture.addEndpoint({ symbols: ['AGE.T'], maxAgeS: 4 });
  fixture.receiver.answerWith(endpoint.path, () => ({ status: 500 }));
  await fixture.write([makePill({ symbol: 'AGE.T' })]);
  const row = await waitFor('the pill to expire', async () => {
    const [kept] = await rowsOf(endpoint);
    return kept?.status === 'expired' && kept;
  });
  expect(row).toMatchObject({ attempts: 1, last_reason: 'too_old' });
  expect(fixture.receiver.at(endpoint.path).length).toBe(1);
});

test.concurrent('events of the account go once to each endpoint that asked for them', async () => {
  const account = await fixture.newAccount('institutional');
  const asks = await fixture.addEndpoint({ account, eventTypes: ['quota.warning'] });
  const asksNot = await fixture.addEndpoint({ account, eventTypes: ['key.expiring'] });
  const data = { policy: 'daily', percent: 80, used: 8, limit: 10 };
  const event = { account_id: account.id, type: 'quota.warning', data: JSON.stringify(data) };
  await fixture.db
    .insertInto('account_events')
    .values([
      { ...event, dedupe: 'one' },
      { ...event, dedupe: 'two' },
    ])
    .execute();
  await waitFor('both events to arrive', () => fixture.receiver.at(asks.path).length === 2);
  expect(fixture.receiver.at(asks.path)).toMatchObject([
    { isVerified: true, body: { type: 'quota.warning', data } },
    { isVerified: true, body: { type: 'quota.warning', data } },
  ]);
  expect(new Set(fixture.receiver.at(asks.path).map(({ id }) => id)).size).toBe(2);
  expect(fixture.receiver.at(asksNot.path)).toEqual([]);
});

test.concurrent('during a rotation each secret verifies, and the newest signs first', async () => {
  const endpoint = await fixture.addEndpoint({ symbols: ['ROT.T'] });
  const { createSeal } = await import('../../domain/access/sealing.ts');
  const { newSecret } = await import('../../domain/webhooks/secrets/secret.ts');
  const { readPepper } = await import('../../domain/access/pepper.ts');
  const seal = createSeal(readPepper(fixture.env.KEY_PEPPER_FILE!));
  const next = newSecret();
  await fixture.db
    .insertInto('webhook_secrets')
    .values({
      ...{ endpoint_id: endpoint.id, account_id: fixture.account.id },
      sealed: seal.seal(next.bytes, endpoint.id),
    })
    .execute();
  await waitFor('the new secret', async () => {
    const cursors = await fixture.write([makePill({ symbol: 'ROT.T' })]);
    await fixture.waitForPills(endpoint.path, cursors, 5_000);
    const last = fixture.receiver.at(endpoint.path).at(-1)!;
    return String(last.headers['webhook-signature']).split(' ').length === 2;
  });
  const { Webhook } = await import('standardwebhooks');
  const last = fixture.receiver.at(endpoint.path).at(-1)!;
  const headers = last.headers as Record<string, string>;
  for (const secret of [endpoint.secret, next.text]) new Webhook(secret).verify(last.text, headers);
  const [first] = headers['webhook-signature']!.split(' ');
  new Webhook(next.text).verify(last.text, { ...headers, 'webhook-signature': first! });
});
