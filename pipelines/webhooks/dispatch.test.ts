import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makePill } from '../../testing/pills.ts';
import { waitFor } from '../../testing/wait.ts';
import { openWebhookFixture, type WebhookFixture } from './testing/webhook-fixture.ts';

let fixture: WebhookFixture;

beforeAll(async () => {
  fixture = await openWebhookFixture();
  await fixture.start();
});

afterAll(() => fixture?.close());

/**
 * Of the pills that a test has written, only the expected ones arrive. A pill of an earlier test may
 * still be on its way through another partition.
 */
function expectOnly(path: string, written: readonly string[], expected: readonly string[]): void {
  const own = fixture.receiver.cursors(path).filter((cursor) => written.includes(cursor));
  expect(own.sort()).toEqual([...expected].sort());
}

/** Writes pills of a symbol until one of them arrives. */
async function writeUntilReceived(path: string, symbol: string): Promise<void> {
  const written: string[] = [];
  await waitFor(`a pill of ${symbol}`, async () => {
    written.push(...(await fixture.write([makePill({ symbol })])));
    return fixture.receiver.cursors(path).some((cursor) => written.includes(cursor));
  });
}

describe('a pill', () => {
  test('is posted by the standard, with the custom headers of the endpoint', async () => {
    const endpoint = await fixture.addEndpoint({ headers: { 'x-desk': 'Tokyo 4' } });
    const [cursor] = await fixture.write([makePill({ symbol: '7203.T' })]);
    await fixture.waitForPills(endpoint.path, [cursor!]);
    const [delivery] = fixture.receiver.at(endpoint.path);
    expect(delivery).toMatchObject({ isVerified: true, type: 'pill.published' });
    expect(delivery!.id).toBe(`msg_${fixture.namespace.settings.epoch}_${cursor}`);
    expect(delivery!.headers).toMatchObject({
      'content-type': 'application/json',
      'x-desk': 'Tokyo 4',
    });
    expect(delivery!.body).toMatchObject({
      type: 'pill.published',
      data: { epoch: fixture.namespace.settings.epoch, cursor, prev: null, symbol: '7203.T' },
    });
    expect(delivery!.body.timestamp).toBe(delivery!.body.data.received_at);
  });

  test('carries the cursor of the previous pill of its symbol', async () => {
    const endpoint = await fixture.addEndpoint({ symbols: ['PREV.T'] });
    const cursors = await fixture.write([1, 2, 3].map(() => makePill({ symbol: 'PREV.T' })));
    await fixture.waitForPills(endpoint.path, cursors);
    const bodies = fixture.receiver.at(endpoint.path).map(({ body }) => body.data);
    const byCursor = new Map(bodies.map((data) => [data.cursor, data.prev]));
    expect(cursors.map((cursor) => byCursor.get(cursor))).toEqual([null, cursors[0], cursors[1]]);
  });

  const old = Date.UTC(2020, 0, 1) * 1_000;
  test.each([
    ['symbol', { symbols: ['F1.T'] }, { symbol: 'F1.T' }, { symbol: 'F1X.T' }],
    [
      'confidence',
      { symbols: ['F2.T'], minConfidence: 50 },
      { confidence: 50 },
      { confidence: 49.9 },
    ],
    [
      'spread from',
      { symbols: ['F3.T'], minSpread: 0.5 },
      { gross_spread_percent: 0.5 },
      { gross_spread_percent: 0.4 },
    ],
    [
      'spread to',
      { symbols: ['F4.T'], maxSpread: -1 },
      { gross_spread_percent: -1 },
      { gross_spread_percent: 0 },
    ],
    [
      'state',
      { symbols: ['F5.T'], states: ['open', '開'] },
      { market_state: '開' },
      { market_state: 'closed' },
    ],
    ['test symbols', { symbols: ['TEST:W'] }, { symbol: 'TEST:W' }, { symbol: 'TEST:X' }],
    ['backfill', { symbols: ['F6.T'], backfill: true }, { timestamp: old }, { symbol: 'F6X.T' }],
  ])('filter by %s', async (_, options, passes, fails) => {
    const endpoint = await fixture.addEndpoint(options);
    const symbol = options.symbols[0]!;
    const plain = { symbol, confidence: 99, gross_spread_percent: 1, market_state: 'open' };
    const good = { ...plain, ...passes };
    const cursors = await fixture.write([
      makePill({ ...plain, ...fails }),
      makePill(good),
      makePill({ ...plain, ...fails }),
      makePill(good),
    ]);
    await fixture.waitForPills(endpoint.path, [cursors[1]!, cursors[3]!]);
    expectOnly(endpoint.path, cursors, [cursors[1]!, cursors[3]!]);
  });

  test('of a backfill, a test symbol or a repeat is not posted unless asked for', async () => {
    const endpoint = await fixture.addEndpoint({});
    const live = makePill({ symbol: 'LIVE.T' });
    const cursors = await fixture.write([
      makePill({ symbol: 'LIVE.T', timestamp: old }),
      makePill({ symbol: 'TEST:Y' }),
      live,
      live,
      makePill({ symbol: 'LIVE.T' }),
    ]);
    await fixture.waitForPills(endpoint.path, [cursors[2]!, cursors[4]!]);
    expectOnly(endpoint.path, cursors, [cursors[2]!, cursors[4]!]);
  });
});

describe('an endpoint', () => {
  test('that is created, changed or disabled is updated within about a second', async () => {
    const endpoint = await fixture.addEndpoint({ symbols: ['CH1.T'] });
    const change = (set: object) =>
      fixture.db.updateTable('webhook_endpoints').set(set).where('id', '=', endpoint.id).execute();
    const first = await fixture.write([makePill({ symbol: 'CH1.T' })]);
    await fixture.waitForPills(endpoint.path, first);
    await change({ symbols: ['CH2.T'] });
    await writeUntilReceived(endpoint.path, 'CH2.T');
    await change({ status: 'disabled', disabled_reason: 'owner' });
    // Changes are applied in order: once the new endpoint gets pills, the change has been applied.
    const probe = await fixture.addEndpoint({ symbols: ['CH2.T'] });
    await writeUntilReceived(probe.path, 'CH2.T');
    const last = await fixture.write([makePill({ symbol: 'CH2.T' })]);
    await fixture.waitForPills(probe.path, last);
    expect(fixture.receiver.cursors(endpoint.path)).not.toContain(last[0]);
  });

  test('of an account without the tier gets nothing', async () => {
    const basic = await fixture.newAccount('basic');
    const none = await fixture.addEndpoint({ account: basic, symbols: ['TIER.T'] });
    const some = await fixture.addEndpoint({ symbols: ['TIER.T'] });
    await fixture.waitForPills(some.path, await fixture.write([makePill({ symbol: 'TIER.T' })]));
    expect(fixture.receiver.at(none.path)).toEqual([]);
  });

  test('with Pro, only the oldest five get pills', async () => {
    const pro = await fixture.newAccount('pro');
    const endpoints = [];
    for (let n = 0; n < 7; n += 1) {
      endpoints.push(await fixture.addEndpoint({ account: pro, symbols: ['FIVE.T'] }));
    }
    const cursors = await fixture.write([makePill({ symbol: 'FIVE.T' })]);
    for (const { path } of endpoints.slice(0, 5)) await fixture.waitForPills(path, cursors);
    for (const { path } of endpoints.slice(5)) expect(fixture.receiver.at(path)).toEqual([]);
  });

  test('that is pending gets only its challenge, and is enabled by an answer that contains it', async () => {
    const endpoint = await fixture.addEndpoint({ status: 'pending', symbols: ['PEND.T'] });
    const { challenge } = await fixture.db
      .selectFrom('webhook_endpoints')
      .select('challenge')
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow();
    let echoes = false;
    fixture.receiver.answerWith(endpoint.path, ({ text }) => ({
      status: 200,
      body: echoes ? text : 'ok',
    }));
    const send = (id: string) =>
      fixture.db
        .insertInto('webhook_deliveries')
        .values({
          ...{ endpoint_id: endpoint.id, message_id: id, event_type: 'endpoint.test' },
          body: JSON.stringify({
            ...{ type: 'endpoint.test', timestamp: new Date().toISOString() },
            data: { endpoint: endpoint.id, challenge },
          }),
          ...{ occurred_at: new Date(), next_at: new Date() },
        })
        .execute();
    const status = async () =>
      (
        await fixture.db
          .selectFrom('webhook_endpoints')
          .select('status')
          .where('id', '=', endpoint.id)
          .executeTakeFirstOrThrow()
      ).status;
    await send('msg_test_1');
    await waitFor('the first test', () => fixture.receiver.at(endpoint.path).length >= 1);
    await waitFor('the failure of the test to be stored', async () => {
      const rows = await fixture.db
        .selectFrom('webhook_deliveries')
        .select(['last_reason', 'attempts'])
        .where('endpoint_id', '=', endpoint.id)
        .execute();
      return rows[0]?.last_reason === 'challenge_missing' && rows[0].attempts >= 1;
    });
    expect(await status()).toBe('pending');
    await fixture.write([makePill({ symbol: 'PEND.T' })]);
    echoes = true;
    await send('msg_test_2');
    await waitFor('the endpoint to be enabled', async () => (await status()) === 'enabled');
    await writeUntilReceived(endpoint.path, 'PEND.T');
  });
});
