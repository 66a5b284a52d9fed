import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';

let api: AccountApi;

beforeAll(async () => {
  api = await openAccountApi();
});

afterAll(() => api?.close());

const readDays = async (base: string) => {
  const { statusCode, body } = await request(`${base}/api/status/days`);
  return { status: statusCode, body: (await body.json()) as Record<string, never> };
};

test('everyone reads latency, availability and incidents by day', async () => {
  const db = openTestDatabase(api.namespace);
  await sql`INSERT INTO latency_hours VALUES (date_trunc('hour', now()), 'stream',
    '{0,0,990,0,0,0,0,0,0,0,0,5,5,0,0,0,0,0}')`.execute(db);
  await sql`INSERT INTO availability_hours VALUES (date_trunc('hour', now()), 999, 1)
    ON CONFLICT (hour) DO UPDATE SET ok_s = 999, degraded_s = 1`.execute(db);
  await sql`INSERT INTO service_incidents VALUES
    ('inc_a', 'log', now() - interval '90 s', now() - interval '30 s', true)`.execute(db);
  // The figures are read once a minute; another process reads them at its start.
  const other = await api.start({});
  const { body } = await waitFor('the first read', async () => {
    const answer = await readDays(other);
    return answer.status === 200 ? answer : `${answer.status}`;
  });
  const days = body.data as unknown as Record<string, unknown>[];
  expect(days).toHaveLength(30);
  expect(days.find(({ stream }) => stream !== null)).toMatchObject({
    ok_share: expect.closeTo(0.999, 2),
    stream: { pills: 1_000, promise_share: 0.995, p99_ms: expect.closeTo(2, 3) },
    webhook: null,
  });
  expect(body.incidents).toMatchObject([
    { component: 'log', began_at: expect.stringMatching(/Z$/), ended_at: expect.any(String) },
  ]);
  await db.destroy();
});

test('an API stores its own availability', async () => {
  const db = openTestDatabase(api.namespace);
  await sql`TRUNCATE availability_hours`.execute(db);
  const { api: process } = api;
  await process.stop();
  const { rows } = await sql<{ ok_s: number }>`
    SELECT sum(ok_s) AS ok_s FROM availability_hours`.execute(db);
  expect(rows[0]!.ok_s).toBeGreaterThan(0);
  await db.destroy();
});
