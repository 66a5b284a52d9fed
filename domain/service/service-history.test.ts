import { sql } from 'kysely';
import { Histogram } from 'prom-client';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import { LATENCY_BUCKETS_S } from '../../lib/metrics/metrics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import { createDatabaseNamespace } from '../../testing/database-namespace.ts';
import { waitFor } from '../../testing/wait.ts';
import { createAvailabilityRecord } from './availability-log.ts';
import { startLatencyLog } from './latency-log.ts';
import { readServiceHistory, SERVICE_HISTORY_LIMITS } from './service-days.ts';

let db: Database;

beforeAll(async () => {
  db = openTestDatabase(await createDatabaseNamespace());
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  await sql`TRUNCATE latency_hours, availability_hours, service_incidents`.execute(db);
});

const histogramOf = () =>
  new Histogram({ name: 'latency', help: 'A latency.', buckets: LATENCY_BUCKETS_S, registers: [] });

test('latencies of two processes add up, and each is counted once', async () => {
  const [one, other] = [histogramOf(), histogramOf()];
  const shared = { db, channel: 'stream', log: silentLog } as const;
  const log = startLatencyLog({ ...shared, histogram: one, everyMs: 20 });
  const second = startLatencyLog({ ...shared, histogram: other, everyMs: 3_600_000 });
  for (let pill = 0; pill < 98; pill += 1) one.observe(0.0045);
  const total = async () => {
    const { days } = await readServiceHistory(db);
    return days.reduce((sum, { stream }) => sum + (stream?.pills ?? 0), 0);
  };
  await waitFor('the first counts', async () => (await total()) === 98);
  one.observe(0.099);
  other.observe(7);
  await log.close();
  await second.close();
  const { days } = await readServiceHistory(db);
  const stream = days.map((day) => day.stream).find((figures) => figures !== null)!;
  expect(await total()).toBe(100);
  expect(stream.promiseShare).toBe(0.99);
  expect(stream.p50Ms).toBeGreaterThan(3);
  expect(stream.p50Ms).toBeLessThan(5);
  expect(days[0]!.webhook).toBeNull();
  expect(days).toHaveLength(SERVICE_HISTORY_LIMITS.days);
});

test('seconds by state and incidents are stored; a short failure is no incident', async () => {
  const startMs = Date.now() - 60_000;
  const record = createAvailabilityRecord(startMs);
  const states = [undefined, [], ['log'], ['log'], ['log'], ['accounts'], [], []];
  for (const [index, failing] of states.entries()) {
    record.look(failing, startMs + (index + 1) * 5_000);
  }
  await record.write(db);
  await record.write(db);
  const { days, incidents } = await readServiceHistory(db);
  const shares = days.map(({ okShare }) => okShare).filter((share) => share !== null);
  // 15 s of 35 s; a midnight between may part them into two days.
  if (shares.length === 1) expect(shares[0]).toBeCloseTo(15 / 35);
  expect(incidents).toEqual([
    {
      component: 'log',
      beganAt: new Date(startMs + 15_000),
      endedAt: new Date(startMs + 30_000),
    },
  ]);
});

test('what cannot be written waits; an incident that goes on has no end', async () => {
  const startMs = Date.now() - 30_000;
  const record = createAvailabilityRecord(startMs);
  for (const s of [5, 10, 15, 20, 25]) record.look(['accounts'], startMs + s * 1_000);
  await sql`ALTER TABLE availability_hours RENAME TO elsewhere`.execute(db);
  await expect(record.write(db)).rejects.toThrow('does not exist');
  await sql`ALTER TABLE elsewhere RENAME TO availability_hours`.execute(db);
  await record.write(db);
  const { rows } = await sql<{ degraded_s: number }>`
    SELECT sum(degraded_s) AS degraded_s FROM availability_hours`.execute(db);
  expect(rows).toEqual([{ degraded_s: 25 }]);
  const { incidents } = await readServiceHistory(db);
  expect(incidents).toMatchObject([{ component: 'accounts', endedAt: null }]);
});

test('an incident of a process that has died ends when it was last seen', async () => {
  await sql`INSERT INTO service_incidents VALUES
    ('inc_a', 'log', now() - interval '10 min', now() - interval '5 min', false)`.execute(db);
  const { incidents } = await readServiceHistory(db);
  expect(incidents).toHaveLength(1);
  expect(incidents[0]!.endedAt!.getTime() - incidents[0]!.beganAt.getTime()).toBe(300_000);
});
