import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import type { TestProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { JOINED_BYTES_MAX } from '../../lib/webhooks/message.ts';
import { LIMITS } from './limits.ts';
import { openWebhookWorld, type WebhookWorld } from './testing/world.ts';

let world: WebhookWorld;
let dispatcher: TestProcess;

beforeAll(async () => {
  world = await openWebhookWorld();
  dispatcher = await world.start();
});

afterAll(() => world?.close());

const many = (symbol: string, count: number) =>
  Array.from({ length: count }, () => makePill({ symbol }));

test('many a second are joined, in order, in bodies that are no longer than promised', async () => {
  const endpoint = await world.addEndpoint({ symbols: ['JOIN.T'] });
  const cursors = await world.write(many('JOIN.T', 3_000));
  await world.got(endpoint.path, cursors);
  const deliveries = world.receiver.at(endpoint.path);
  const joined = deliveries.filter(({ type }) => type === 'pills.published');
  expect(joined.length).toBeGreaterThan(10);
  expect(deliveries.length).toBeLessThan(300);
  for (const { text, isVerified, cursors: own, body } of joined) {
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(JOINED_BYTES_MAX);
    expect(isVerified).toBe(true);
    const offsets = own.map((cursor) => Number(cursor.split('-')[1]));
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    expect(body.timestamp).toBe(body.data.pills[0].received_at);
  }
  const all = deliveries.flatMap((delivery) => delivery.cursors);
  expect(all.length).toBe(cursors.length);
});

test('an endpoint that allows one message a second gets its pills all the same, joined', async () => {
  const endpoint = await world.addEndpoint({ symbols: ['SLOW.T'], ratePerS: 1 });
  const cursors: string[] = [];
  for (let n = 0; n < 30; n += 1) cursors.push(...(await world.write(many('SLOW.T', 1))));
  await world.got(endpoint.path, cursors);
  const deliveries = world.receiver.at(endpoint.path);
  const spanS = (deliveries.at(-1)!.atMs - deliveries[0]!.atMs) / 1_000;
  expect(deliveries.length).toBeLessThanOrEqual(Math.ceil(spanS) + 2);
});

test('one of many never answers: the others get everything, and the log is not held up', async () => {
  const hanging = await world.addEndpoint({ symbols: ['MANY.T'] });
  world.receiver.behave(hanging.path, () => undefined);
  const others = [];
  for (let n = 0; n < 20; n += 1) others.push(await world.addEndpoint({ symbols: ['MANY.T'] }));
  const cursors: string[] = [];
  for (let n = 0; n < 40; n += 1) cursors.push(...(await world.write(many('MANY.T', 1))));
  for (const { path } of others) await world.got(path, cursors);
  await waitFor('all pills of the hanging one to be kept', async () => {
    const row = await world.db
      .selectFrom('webhook_deliveries')
      .select(({ fn }) => fn.sum<string>('pills').as('pills'))
      .where('endpoint_id', '=', hanging.id)
      .executeTakeFirstOrThrow();
    return Number(row.pills) === cursors.length || `${row.pills} kept`;
  });
  await waitFor('the position', async () => {
    const metrics = await (await fetch(`${dispatcher.opsUrl}/metrics`)).text();
    const rows = await world.db.selectFrom('webhook_positions').select('next_offset').execute();
    const next = rows.reduce((sum, { next_offset: at }) => sum + Number(at), 0);
    const [, last] = cursors.at(-1)!.split('-').map(Number);
    return metrics.includes('pillole_webhook') && next > last!;
  });
});

test('more than may wait is not kept, and that is told with its time', async () => {
  const endpoint = await world.addEndpoint({ symbols: ['FULL.T'] });
  world.receiver.behave(endpoint.path, () => ({ status: 429, headers: { 'retry-after': '600' } }));
  await sql`INSERT INTO webhook_deliveries
      (endpoint_id, message_id, event_type, body, pills, occurred_at, next_at)
    SELECT ${endpoint.id}, 'msg_full_' || n, 'pill.published', '{}', 1, now(), now() + interval '1 hour'
    FROM generate_series(1, ${LIMITS.backlogMessagesMax}) AS n`.execute(world.db);
  const fullSince = await waitFor('it to be told', async () => {
    await world.write(many('FULL.T', 1));
    const row = await world.db
      .selectFrom('webhook_endpoints')
      .select('backlog_full_since')
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow();
    return row.backlog_full_since ?? undefined;
  });
  expect(Math.abs(fullSince.getTime() - Date.now())).toBeLessThan(60_000);
  const { count } = await world.db
    .selectFrom('webhook_deliveries')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('endpoint_id', '=', endpoint.id)
    .executeTakeFirstOrThrow();
  // The count is as of two seconds ago.
  expect(Number(count)).toBeLessThan(LIMITS.backlogMessagesMax + 200);
});
