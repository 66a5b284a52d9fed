import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { RETRY_WAITS_S } from '../../lib/webhooks/schedule.ts';
import { openWebhookWorld, type TestEndpoint, type WebhookWorld } from './testing/world.ts';

let world: WebhookWorld;

beforeAll(async () => {
  world = await openWebhookWorld();
  await world.start({ WEBHOOK_TIMEOUT_MS: '3000' });
});

afterAll(() => world?.close());

const rowsOf = (endpoint: TestEndpoint) =>
  world.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .select(sql<number>`extract(epoch FROM next_at - now())::double precision`.as('due_s'))
    .where('endpoint_id', '=', endpoint.id)
    .orderBy('id')
    .execute();
const stateOf = (endpoint: TestEndpoint) =>
  world.db
    .selectFrom('webhook_endpoints')
    .selectAll()
    .where('id', '=', endpoint.id)
    .executeTakeFirstOrThrow();
/** Waits for the one row of an endpoint to have this many attempts behind it. */
const attempted = (endpoint: TestEndpoint, attempts: number) =>
  waitFor(`${attempts} attempts`, async () => {
    const [row] = await rowsOf(endpoint);
    return row?.attempts === attempts ? row : `${row?.attempts}`;
  });
/** Makes what waits due now, instead of waiting for hours. */
const makeDue = (endpoint: TestEndpoint) =>
  sql`UPDATE webhook_deliveries SET next_at = now() - interval '3 seconds'
    WHERE endpoint_id = ${endpoint.id} AND status = 'waiting'`.execute(world.db);
const logOf = async (endpoint: TestEndpoint, wanted: number) => {
  const { openClickHouse, databaseName } = await import('../../lib/clickhouse.ts');
  const clickhouse = openClickHouse({
    url: world.env.CLICKHOUSE_URL!,
    database: databaseName(world.namespace.name),
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

describe('an attempt that fails', () => {
  test.each([
    ['500', { status: 500 }, 500, 'status'],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 302, 'redirect'],
    ['no answer in time', undefined, null, 'timeout'],
  ])(
    'by %s is tried again after 5 s, with the same id and body',
    async (_, answer, status, reason) => {
      const endpoint = await world.addEndpoint({ symbols: ['RETRY.T'] });
      world.receiver.behave(endpoint.path, ({ count }) => (count === 0 ? answer : {}));
      await world.write([makePill({ symbol: 'RETRY.T' })]);
      const row = await waitFor('the row', async () => {
        const [kept] = await rowsOf(endpoint);
        return kept?.attempts === 1 && kept;
      });
      expect(row).toMatchObject({ last_status: status, last_reason: reason, status: 'waiting' });
      expect(row.due_s).toBeGreaterThan(0);
      expect(row.due_s).toBeLessThanOrEqual(5.5);
      await waitFor('the second attempt', () => world.receiver.at(endpoint.path).length === 2);
      const [first, second] = world.receiver.at(endpoint.path);
      expect(second!.atMs - first!.atMs).toBeGreaterThan(4_000);
      expect({ id: second!.id, text: second!.text }).toEqual({ id: first!.id, text: first!.text });
      expect(second!.isVerified).toBe(true);
      await waitFor('the row to go', async () => (await rowsOf(endpoint)).length === 0);
      const lines = await logOf(endpoint, 2);
      expect(lines).toMatchObject([
        { attempt: 1, outcome: 'retry', status: status ?? 0, reason, body: first!.text },
        { attempt: 2, outcome: 'delivered', status: 204, reason: '', body: '' },
      ]);
      expect((await stateOf(endpoint)).failing_since).toBeNull();
    },
  );

  test('keeps to the schedule; after the tenth it is kept as failed', async () => {
    const endpoint = await world.addEndpoint({ symbols: ['ALL.T'] });
    world.receiver.behave(endpoint.path, () => ({ status: 500, body: 'no <b>\u0000 luck' }));
    await world.write([makePill({ symbol: 'ALL.T' })]);
    // The first four by attempts; a test cannot wait until the breaker of the process has rested.
    for (const [at, wait] of RETRY_WAITS_S.slice(0, 4).entries()) {
      const { due_s: dueS } = await attempted(endpoint, at + 1);
      expect(dueS).toBeGreaterThan(wait * 0.9 - 3);
      expect(dueS).toBeLessThanOrEqual(wait * 1.1);
      await sql`UPDATE webhook_endpoints SET resting_until = NULL WHERE id = ${endpoint.id}`.execute(
        world.db,
      );
      if (at < 3) await makeDue(endpoint);
    }
    await sql`UPDATE webhook_deliveries SET attempts = 9 WHERE endpoint_id = ${endpoint.id}`.execute(
      world.db,
    );
    await makeDue(endpoint);
    const row = await waitFor('the end', async () => {
      const [kept] = await rowsOf(endpoint);
      return kept?.status === 'failed' && kept;
    });
    expect(row).toMatchObject({ attempts: 10, last_status: 500 });
    expect(row.settled_at).not.toBeNull();
    const lines = await logOf(endpoint, 5);
    expect(lines.at(-1)).toMatchObject({ attempt: 10, outcome: 'failed' });
    expect(String(lines[0]!.answer)).toContain('luck');
  });

  test('with Retry-After is not tried before', async () => {
    const endpoint = await world.addEndpoint({ symbols: ['AFTER.T'] });
    world.receiver.behave(endpoint.path, () => ({
      status: 429,
      headers: { 'retry-after': '120' },
    }));
    await world.write([makePill({ symbol: 'AFTER.T' })]);
    const row = await attempted(endpoint, 1);
    expect(row.due_s).toBeGreaterThan(110);
    expect(row).toMatchObject({ last_status: 429, last_reason: 'too_many_requests' });
    await waitFor('it to rest', async () => (await stateOf(endpoint)).resting_until !== null);
    // What comes meanwhile is kept, and not tried either.
    await world.write([makePill({ symbol: 'AFTER.T' })]);
    await waitFor('the second row', async () => (await rowsOf(endpoint)).length === 2);
    expect(world.receiver.at(endpoint.path).length).toBe(1);
  });

  test('with 410 disables the endpoint at once, and is told by another one', async () => {
    const other = await world.addEndpoint({ eventTypes: ['endpoint.disabled'] });
    const endpoint = await world.addEndpoint({
      symbols: ['GONE.T'],
      eventTypes: ['pill.published', 'endpoint.disabled'],
    });
    world.receiver.behave(endpoint.path, () => ({ status: 410 }));
    await world.write([makePill({ symbol: 'GONE.T' })]);
    const told = await waitFor('the event', () =>
      world.receiver.at(other.path).find(({ body }) => body.data.endpoint === endpoint.id),
    );
    expect(told.body).toMatchObject({
      type: 'endpoint.disabled',
      data: { reason: 'gone', last_status: 410, last_reason: 'gone' },
    });
    expect(told.isVerified).toBe(true);
    expect(await stateOf(endpoint)).toMatchObject({ status: 'disabled', disabled_reason: 'gone' });
    expect(world.receiver.at(endpoint.path).length).toBe(1);
  });
});

test('after five failures in a row an endpoint rests; when it answers again, all that waits comes', async () => {
  const endpoint = await world.addEndpoint({ symbols: ['REST.T'] });
  let isDown = true;
  world.receiver.behave(endpoint.path, () => ({ status: isDown ? 500 : 204 }));
  const cursors: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    cursors.push(...(await world.write([makePill({ symbol: 'REST.T' })])));
    await waitFor('the attempt', () => world.receiver.at(endpoint.path).length > n);
  }
  await waitFor('it to rest', async () => (await stateOf(endpoint)).resting_until !== null);
  const tried = world.receiver.at(endpoint.path).length;
  cursors.push(
    ...(await world.write(Array.from({ length: 40 }, () => makePill({ symbol: 'REST.T' })))),
  );
  // They are kept within about a second, joined.
  await waitFor('the backlog', async () => {
    const rows = await rowsOf(endpoint);
    return rows.reduce((sum, { pills }) => sum + pills, 0) === cursors.length;
  });
  expect((await rowsOf(endpoint)).length).toBeLessThan(20);
  isDown = false;
  await world.got(endpoint.path, cursors, 45_000);
  expect(world.receiver.at(endpoint.path).length).toBeGreaterThan(tried);
  const seen = world.receiver.at(endpoint.path).filter(({ count }) => count >= tried);
  expect(seen.every(({ isVerified }) => isVerified)).toBe(true);
  await waitFor('nothing to wait', async () => (await rowsOf(endpoint)).length === 0);
  expect((await stateOf(endpoint)).failing_since).toBeNull();
});

test('a pill that is older than the endpoint wants is listed, not posted', async () => {
  const endpoint = await world.addEndpoint({ symbols: ['AGE.T'], maxAgeS: 2 });
  world.receiver.behave(endpoint.path, () => ({ status: 500 }));
  await world.write([makePill({ symbol: 'AGE.T' })]);
  const row = await waitFor('it to expire', async () => {
    const [kept] = await rowsOf(endpoint);
    return kept?.status === 'expired' && kept;
  });
  expect(row).toMatchObject({ attempts: 1, last_reason: 'too_old' });
  expect(world.receiver.at(endpoint.path).length).toBe(1);
});

test('events of the account come to those who asked, once each', async () => {
  const account = await world.newAccount('institutional');
  const asks = await world.addEndpoint({ account, eventTypes: ['quota.warning'] });
  const asksNot = await world.addEndpoint({ account, eventTypes: ['key.expiring'] });
  const data = { policy: 'daily', percent: 80, used: 8, limit: 10 };
  const event = { account_id: account.id, type: 'quota.warning', data: JSON.stringify(data) };
  await world.db
    .insertInto('account_events')
    .values([
      { ...event, dedupe: 'one' },
      { ...event, dedupe: 'two' },
    ])
    .execute();
  await waitFor('both', () => world.receiver.at(asks.path).length === 2);
  expect(world.receiver.at(asks.path)).toMatchObject([
    { isVerified: true, body: { type: 'quota.warning', data } },
    { isVerified: true, body: { type: 'quota.warning', data } },
  ]);
  expect(new Set(world.receiver.at(asks.path).map(({ id }) => id)).size).toBe(2);
  expect(world.receiver.at(asksNot.path)).toEqual([]);
});

test('several secrets during a rotation: each verifies, the newest stands first', async () => {
  const endpoint = await world.addEndpoint({ symbols: ['ROT.T'] });
  const { createSeal } = await import('../../lib/webhooks/sealing.ts');
  const { newSecret } = await import('../../lib/webhooks/secret.ts');
  const { readPepper } = await import('../../lib/access/pepper.ts');
  const seal = createSeal(readPepper(world.env.KEY_PEPPER_FILE!));
  const next = newSecret();
  await world.db
    .insertInto('webhook_secrets')
    .values({
      ...{ endpoint_id: endpoint.id, account_id: world.account.id },
      sealed: seal.seal(next.bytes, endpoint.id),
    })
    .execute();
  await waitFor('the new secret', async () => {
    const cursors = await world.write([makePill({ symbol: 'ROT.T' })]);
    await world.got(endpoint.path, cursors, 500);
    const last = world.receiver.at(endpoint.path).at(-1)!;
    return String(last.headers['webhook-signature']).split(' ').length === 2;
  });
  const { Webhook } = await import('standardwebhooks');
  const last = world.receiver.at(endpoint.path).at(-1)!;
  const headers = last.headers as Record<string, string>;
  for (const secret of [endpoint.secret, next.text]) new Webhook(secret).verify(last.text, headers);
  const [first] = headers['webhook-signature']!.split(' ');
  new Webhook(next.text).verify(last.text, { ...headers, 'webhook-signature': first! });
});
