import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { openWebhookWorld, type WebhookWorld } from './testing/world.ts';

let world: WebhookWorld;

beforeAll(async () => {
  world = await openWebhookWorld();
  await world.start();
});

afterAll(() => world?.close());

/** A pill that is written last: when it has come, all before it has been judged. */
async function nothingElse(path: string, wanted: readonly string[]): Promise<void> {
  expect([...world.receiver.cursors(path)].sort()).toEqual([...wanted].sort());
}

describe('a pill', () => {
  test('is posted as the standard has it, with the headers of its owner', async () => {
    const endpoint = await world.addEndpoint({ headers: { 'x-desk': 'Tokyo 4' } });
    const [cursor] = await world.write([makePill({ symbol: '7203.T' })]);
    await world.got(endpoint.path, [cursor!]);
    const [delivery] = world.receiver.at(endpoint.path);
    expect(delivery).toMatchObject({ isVerified: true, type: 'pill.published' });
    expect(delivery!.id).toBe(`msg_${world.namespace.settings.epoch}_${cursor}`);
    expect(delivery!.headers).toMatchObject({
      'content-type': 'application/json',
      'x-desk': 'Tokyo 4',
    });
    expect(delivery!.body).toMatchObject({
      type: 'pill.published',
      data: { epoch: world.namespace.settings.epoch, cursor, prev: null, symbol: '7203.T' },
    });
    expect(delivery!.body.timestamp).toBe(delivery!.body.data.received_at);
  });

  test('comes with the cursor of the one before it', async () => {
    const endpoint = await world.addEndpoint({ symbols: ['PREV.T'] });
    const cursors = await world.write([1, 2, 3].map(() => makePill({ symbol: 'PREV.T' })));
    await world.got(endpoint.path, cursors);
    const bodies = world.receiver.at(endpoint.path).map(({ body }) => body.data);
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
    const endpoint = await world.addEndpoint(options);
    const symbol = options.symbols[0]!;
    const plain = { symbol, confidence: 99, gross_spread_percent: 1, market_state: 'open' };
    const good = { ...plain, ...passes };
    const cursors = await world.write([
      makePill({ ...plain, ...fails }),
      makePill(good),
      makePill({ ...plain, ...fails }),
      makePill(good),
    ]);
    await world.got(endpoint.path, [cursors[1]!, cursors[3]!]);
    await nothingElse(endpoint.path, [cursors[1]!, cursors[3]!]);
  });

  test('of backfill, of a test symbol, or a repeat reaches nobody who did not ask', async () => {
    const endpoint = await world.addEndpoint({});
    const live = makePill({ symbol: 'LIVE.T' });
    const cursors = await world.write([
      makePill({ symbol: 'LIVE.T', timestamp: old }),
      makePill({ symbol: 'TEST:Y' }),
      live,
      live,
      makePill({ symbol: 'LIVE.T' }),
    ]);
    await world.got(endpoint.path, [cursors[2]!, cursors[4]!]);
    await nothingElse(endpoint.path, [cursors[2]!, cursors[4]!]);
  });
});

describe('an endpoint', () => {
  test('that is made, changed, disabled and deleted is so within a second or so', async () => {
    const endpoint = await world.addEndpoint({ symbols: ['CH1.T'] });
    const change = (set: object) =>
      world.db.updateTable('webhook_endpoints').set(set).where('id', '=', endpoint.id).execute();
    const first = await world.write([makePill({ symbol: 'CH1.T' })]);
    await world.got(endpoint.path, first);
    await change({ symbols: ['CH2.T'] });
    await waitFor('the change', async () => {
      const cursors = await world.write([makePill({ symbol: 'CH2.T' })]);
      await world.got(endpoint.path, cursors, 500);
      return true;
    });
    await change({ status: 'disabled', disabled_reason: 'owner' });
    // Another endpoint sees the same change feed: when its probe comes, ours was applied.
    const probe = await world.addEndpoint({ symbols: ['CH2.T'] });
    await waitFor('the probe', async () => {
      const cursors = await world.write([makePill({ symbol: 'CH2.T' })]);
      await world.got(probe.path, cursors, 500);
      return true;
    });
    const before = world.receiver.at(endpoint.path).length;
    await world.got(probe.path, await world.write([makePill({ symbol: 'CH2.T' })]));
    expect(world.receiver.at(endpoint.path).length).toBe(before);
  });

  test('of an account without the tier gets nothing', async () => {
    const basic = await world.newAccount('basic');
    const none = await world.addEndpoint({ account: basic, symbols: ['TIER.T'] });
    const some = await world.addEndpoint({ symbols: ['TIER.T'] });
    await world.got(some.path, await world.write([makePill({ symbol: 'TIER.T' })]));
    expect(world.receiver.at(none.path)).toEqual([]);
  });

  test('of Pro: the oldest five alone', async () => {
    const pro = await world.newAccount('pro');
    const endpoints = [];
    for (let n = 0; n < 7; n += 1) {
      endpoints.push(await world.addEndpoint({ account: pro, symbols: ['FIVE.T'] }));
    }
    const cursors = await world.write([makePill({ symbol: 'FIVE.T' })]);
    for (const { path } of endpoints.slice(0, 5)) await world.got(path, cursors);
    for (const { path } of endpoints.slice(5)) expect(world.receiver.at(path)).toEqual([]);
  });

  test('that is pending gets its challenge alone, and is enabled by an answer that has it', async () => {
    const endpoint = await world.addEndpoint({ status: 'pending', symbols: ['PEND.T'] });
    const { challenge } = await world.db
      .selectFrom('webhook_endpoints')
      .select('challenge')
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow();
    let echoes = false;
    world.receiver.behave(endpoint.path, ({ text }) => ({
      status: 200,
      body: echoes ? text : 'ok',
    }));
    const send = (id: string) =>
      world.db
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
        await world.db
          .selectFrom('webhook_endpoints')
          .select('status')
          .where('id', '=', endpoint.id)
          .executeTakeFirstOrThrow()
      ).status;
    await send('msg_test_1');
    await waitFor('the first test', () => world.receiver.at(endpoint.path).length === 1);
    await waitFor('its failure to be kept', async () => {
      const rows = await world.db
        .selectFrom('webhook_deliveries')
        .select(['last_reason', 'attempts'])
        .where('endpoint_id', '=', endpoint.id)
        .execute();
      return rows[0]?.last_reason === 'challenge_missing' && rows[0].attempts === 1;
    });
    expect(await status()).toBe('pending');
    await world.write([makePill({ symbol: 'PEND.T' })]);
    echoes = true;
    await send('msg_test_2');
    await waitFor('it to be enabled', async () => (await status()) === 'enabled');
    await waitFor('pills', async () => {
      const cursors = await world.write([makePill({ symbol: 'PEND.T' })]);
      await world.got(endpoint.path, cursors, 500);
      return true;
    });
  });
});
