import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JOINED_BYTES_MAX } from '../../domain/webhooks/events/webhook-message.ts';
import { makePill } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { LIMITS } from './limits.ts';
import { openWebhookFixture, type WebhookFixture } from './testing/webhook-fixture.ts';

let fixture: WebhookFixture;
let dispatcher: TestProcess;

beforeAll(async () => {
  fixture = await openWebhookFixture();
  dispatcher = await fixture.start();
});

afterAll(() => fixture?.close());

const many = (symbol: string, count: number) =>
  Array.from({ length: count }, () => makePill({ symbol }));

test('many pills a second are joined, in order, in bodies within the promised size', async () => {
  const endpoint = await fixture.addEndpoint({ symbols: ['JOIN.T'] });
  const cursors = await fixture.write(many('JOIN.T', 3_000));
  await fixture.waitForPills(endpoint.path, cursors);
  const deliveries = fixture.receiver.at(endpoint.path);
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

test('an endpoint with one message a second gets all its pills, joined', async () => {
  const endpoint = await fixture.addEndpoint({ symbols: ['SLOW.T'], ratePerS: 1 });
  const cursors: string[] = [];
  for (let n = 0; n < 30; n += 1) cursors.push(...(await fixture.write(many('SLOW.T', 1))));
  await fixture.waitForPills(endpoint.path, cursors);
  const deliveries = fixture.receiver.at(endpoint.path);
  const spanS = (deliveries.at(-1)!.atMs - deliveries[0]!.atMs) / 1_000;
  expect(deliveries.length).toBeLessThanOrEqual(Math.ceil(spanS) + 2);
});

test('one of many never answers: the others get everything, and the log is not held up', async () => {
  const hanging = await fixture.addEndpoint({ symbols: ['MANY.T'] });
  fixture.receiver.answerWith(hanging.path, () => undefined);
  const others = [];
  for (let n = 0; n < 20; n += 1) others.push(await fixture.addEndpoint({ symbols: ['MANY.T'] }));
  const cursors: string[] = [];
  for (let n = 0; n < 40; n += 1) cursors.push(...(await fixture.write(many('MANY.T', 1))));
  for (const { path } of others) await fixture.waitForPills(path, cursors);
  await waitFor('all pills of the hanging endpoint to be stored', async () => {
    const row = await fixture.db
      .selectFrom('webhook_deliveries')
      .select(({ fn }) => fn.sum<string>('pills').as('pills'))
      .where('endpoint_id', '=', hanging.id)
      .executeTakeFirstOrThrow();
    return Number(row.pills) === cursors.length || `${row.pills} stored`;
  });
  await waitFor('the position', async () => {
    const metrics = await (await fetch(`${dispatcher.opsUrl}/metrics`)).text();
    const rows = await fixture.db.selectFrom('webhook_positions').select('next_offset').execute();
    const next = rows.reduce((sum, { next_offset: at }) => sum + Number(at), 0);
    const [, last] = cursors.at(-1)!.split('-').map(Number);
    return metrics.includes('pillole_webhook') && next > last!;
  });
});

test('pills beyond the waiting limit are discarded, and the time of the first is reported', async () => {
  const endpoint = await fixture.addEndpoint({ symbols: ['FULL.T'] });
  fixture.receiver.answerWith(endpoint.path, () => ({
    status: 429,
    headers: { 'retry-after': '600' },
  }));
  await sql`INSERT INTO webhook_deliveries
      (endpoint_id, message_id, event_type, body, pills, occurred_at, next_at)
    SELECT ${endpoint.id}, 'msg_full_' || n, 'pill.published', '{}', 1, now(), now() + interval '1 hour'
    FROM generate_series(1, ${LIMITS.waitingMessagesMax}) AS n`.execute(fixture.db);
  const fullSince = await waitFor('backlog_full_since', async () => {
    await fixture.write(many('FULL.T', 1));
    const row = await fixture.db
      .selectFrom('webhook_endpoints')
      .select('backlog_full_since')
      .where('id', '=', endpoint.id)
      .executeTakeFirstOrThrow();
    return row.backlog_full_since ?? undefined;
  });
  expect(Math.abs(fullSince.getTime() - Date.now())).toBeLessThan(60_000);
  const { count } = await fixture.db
    .selectFrom('webhook_deliveries')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('endpoint_id', '=', endpoint.id)
    .executeTakeFirstOrThrow();
  // The dispatcher counts every two seconds.
  expect(Number(count)).toBeLessThan(LIMITS.waitingMessagesMax + 200);
});
