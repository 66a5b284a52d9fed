import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newKey } from '../../../domain/access/key-format.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { REFUSAL_AFTER_MS } from '../limits.ts';

const PATH = '/api/pills/latest?symbol=QUOTA.T';

let namespace: Namespace;
let db: Database;
let latest: TestProcess;
let writer: PillWriter;
let processes: TestProcess[];
let bases: string[];

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  const ports = await Promise.all([getPort(), getPort(), getPort(), getPort()]);
  bases = ports.map((port) => `http://127.0.0.1:${port}`);
  processes = await Promise.all(
    ports.map((port) =>
      startProcess('gateway/api/main.js', [], { ...namespace.env, API_PORT: String(port) }),
    ),
  );
  await Promise.all([latest.ready(), ...processes.map((api) => api.ready())]);
  writer = await openPillWriter(namespace);
  await writer.write([makePill({ symbol: 'QUOTA.T' })]);
  const reader = await createTestAccount(db, namespace, { tier: 'institutional' });
  for (const base of bases) {
    await waitFor('the pill', async () => (await get(base, PATH, reader.key)).status === 200);
  }
});

afterAll(async () => {
  await Promise.all([...(processes ?? []), latest].map((one) => one?.stop()));
  await writer?.close();
  await db?.destroy();
});

async function get(base: string, path: string, key?: string, more: Record<string, string> = {}) {
  const headers = { ...(key === undefined ? {} : { 'x-api-key': key }), ...more };
  const { statusCode, headers: answered, body } = await request(`${base}${path}`, { headers });
  const text = await body.text();
  return { status: statusCode, headers: answered, body: text === '' ? null : JSON.parse(text) };
}

async function usedOf({ id }: TestAccount): Promise<number> {
  const rows = await db
    .selectFrom('usage_days')
    .select('used')
    .where('account_id', '=', id)
    .execute();
  return rows.reduce((sum, { used }) => sum + Number(used), 0);
}

describe('the daily quota', () => {
  test.each([1, 2, 3])(
    '400 parallel calls over four processes with 100 left: exactly 100 pass (round %i)',
    async () => {
      const account = await createTestAccount(db, namespace, { tier: 'basic', callsPerDay: 130 });
      for (let i = 0; i < 30; i += 1) await get(bases[i % 4]!, PATH, account.key);
      const answers = await Promise.all(
        Array.from({ length: 400 }, (_, i) => get(bases[i % 4]!, PATH, account.key)),
      );
      const count = (status: number) => answers.filter((one) => one.status === status).length;
      // A call whose count takes longer than a second, on a machine that stalls, is 503 and given back.
      const undecided = count(503);
      expect(count(200) + count(429) + undecided).toBe(400);
      expect(count(200)).toBeLessThanOrEqual(100);
      expect(count(200) + undecided).toBeGreaterThanOrEqual(100);
      const used = 30 + count(200);
      await waitFor(`${used} calls to be counted`, async () => (await usedOf(account)) === used);
    },
  );

  test('429 names the limit, its scope and when it resets; the event is raised once', async () => {
    const account = await createTestAccount(db, namespace, { tier: 'basic', callsPerDay: 2 });
    const first = await get(bases[0]!, PATH, account.key);
    expect(first.headers['ratelimit-policy']).toContain('"daily";q=2;w=86400');
    expect(first.headers.ratelimit).toMatch(/"daily";r=1;t=\d+/);
    await get(bases[1]!, PATH, account.key);
    const refused = await get(bases[2]!, PATH, account.key);
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      code: 'daily_quota_exceeded',
      'violated-policies': ['daily'],
      scope: 'account',
      limit: 2,
      used: 2,
      resets_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT00:00:00\.000000Z$/),
    });
    expect(Number(refused.headers['retry-after'])).toBe(refused.body.retry_after_s);
    expect(refused.headers.ratelimit).toContain('"daily";r=0');
    const raised = async () => {
      const events = db.selectFrom('account_events').select('data');
      const rows = await events.where('account_id', '=', account.id).orderBy('id').execute();
      return rows.map(({ data }) => data.percent);
    };
    await waitFor('the events', async () => (await raised()).length >= 3);
    expect(await raised()).toEqual([80, 95, 100]);
  });

  test('304, 400 and 404 count; 401, 403 and 429 do not; a 503 is given back', async () => {
    const account = await createTestAccount(db, namespace, { tier: 'basic', callsPerDay: 50 });
    const streamOnly = await createTestAccount(db, namespace, { tier: 'pro', scopes: ['stream'] });
    const ok = await get(bases[0]!, PATH, account.key);
    const same = { 'if-none-match': String(ok.headers.etag) };
    const statuses = [
      (await get(bases[0]!, PATH, account.key, same)).status,
      (await get(bases[0]!, '/api/pills/latest?nope=1', account.key)).status,
      (await get(bases[0]!, '/api/pills/latest?symbol=NONE.T', account.key)).status,
    ];
    expect(statuses).toEqual([304, 400, 404]);
    expect((await get(bases[0]!, PATH, streamOnly.key)).body.code).toBe('scope_missing');
    latest.child.kill('SIGSTOP');
    try {
      const [ack] = await writer.write([makePill({ symbol: 'QUOTA.T' })]);
      const behind = `${namespace.settings.epoch}:${ack!.partition}-${ack!.offset}`;
      const late = await get(bases[0]!, `/api/pills/latest?at_least=${behind}`, account.key);
      expect(late.status).toBe(503);
    } finally {
      latest.child.kill('SIGCONT');
    }
    await waitFor('the call to be given back', async () => (await usedOf(account)) === 4);
    expect(await usedOf(streamOnly)).toBe(0);
  });

  test('the day starts at 00:00 UTC by the clock of PostgreSQL', async () => {
    const own = await createNamespace();
    const ownDb = openTestDatabase(own);
    const port = await getPort();
    const api = await startProcess('gateway/api/main.js', [], {
      ...own.env,
      API_PORT: String(port),
    });
    const base = `http://127.0.0.1:${port}`;
    const call = (key: string) => get(base, '/api/pills/latest', key);
    const setClock = (time: string) =>
      sql`${sql.raw(`CREATE OR REPLACE FUNCTION quota_now() RETURNS timestamptz LANGUAGE sql
        VOLATILE AS $$ SELECT timestamptz '${time}' $$`)}`.execute(ownDb);
    try {
      await api.ready();
      await setClock('2026-03-01 23:59:58+00');
      const account = await createTestAccount(ownDb, own, { tier: 'basic', callsPerDay: 2 });
      expect((await call(account.key)).headers.ratelimit).toContain('"daily";r=1;t=2');
      await call(account.key);
      const refused = await call(account.key);
      expect([refused.status, refused.body.resets_at]).toEqual([
        429,
        '2026-03-02T00:00:00.000000Z',
      ]);
      await setClock('2026-03-02 00:00:00.001+00');
      const next = await waitFor('the new day', async () => {
        const answer = await call(account.key);
        return answer.status !== 429 && answer;
      });
      expect(next.headers.ratelimit).toContain('"daily";r=1;');
    } finally {
      await api.stop();
      await ownDb.destroy();
    }
  });

  test('Institutional has no daily limit, and its calls are counted', async () => {
    const account = await createTestAccount(db, namespace, { tier: 'institutional' });
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => get(bases[i % 4]!, PATH, account.key)),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(String(answers[0]!.headers['ratelimit-policy'])).not.toContain('daily');
    await waitFor('the count', async () => (await usedOf(account)) === 60);
  });
});

test('the burst limit is shown, refuses and recovers', async () => {
  const account = await createTestAccount(db, namespace, {
    tier: 'pro',
    ratePerS: 1,
    rateBurst: 3,
  });
  // At once: one after another, tokens could refill in between on a slow machine.
  const calls = Array.from({ length: 30 }, () => get(bases[0]!, PATH, account.key));
  const answers = await Promise.all(calls);
  const refused = answers.find(({ status }) => status === 429)!;
  expect(refused.body).toMatchObject({
    code: 'rate_limited',
    'violated-policies': ['burst'],
    limit: 3,
  });
  expect(refused.headers['ratelimit-policy']).toContain('"burst";q=3;w=3');
  await waitFor(
    'a new token',
    async () => (await get(bases[0]!, PATH, account.key)).status === 200,
  );
});

describe('refusals of a key', () => {
  test('unknown, revoked and expired keys get one answer, and none before its time', async () => {
    const revoked = await createTestAccount(db, namespace, { tier: 'pro' });
    await db
      .updateTable('api_keys')
      .set({ revoked_at: new Date() })
      .where('id', '=', revoked.keyId)
      .execute();
    const past = new Date(Date.now() - 1_000);
    const expired = await createTestAccount(db, namespace, { tier: 'pro', expiresAt: past });
    const other = await createNamespace();
    const otherDb = openTestDatabase(other);
    const unknown = await createTestAccount(otherDb, other, { tier: 'pro' });
    await otherDb.destroy();
    const bodies = new Set<string>();
    for (const key of [unknown.key, revoked.key, expired.key]) {
      const began = performance.now();
      const answer = await get(bases[0]!, PATH, key);
      // Only a lower bound, which holds even on the slowest machine.
      expect(performance.now() - began).toBeGreaterThan(REFUSAL_AFTER_MS - 2);
      expect(answer.status).toBe(401);
      expect(answer.body.request_id).toBeDefined();
      bodies.add(JSON.stringify({ ...answer.body, request_id: '' }));
      expect(answer.headers['ratelimit-policy']).toBeUndefined();
    }
    expect(bodies.size).toBe(1);
    expect([...bodies][0]).toContain('"code":"key_invalid"');
  });

  test.each([
    [undefined, {}, 'key_missing'],
    ['', {}, 'key_missing'],
    [undefined, { authorization: `Bearer ${newKey()}` }, 'key_scheme_wrong'],
    [`Bearer ${newKey()}`, {}, 'key_scheme_wrong'],
    ['nonsense', {}, 'key_malformed'],
    ['x'.repeat(8_000), {}, 'key_malformed'],
    [`${newKey()}, ${newKey()}`, {}, 'key_malformed'],
  ])('what the client can see itself is told: %s', async (key, headers, code) => {
    const all = { ...headers, ...(key === undefined ? {} : { 'x-api-key': key }) };
    const {
      statusCode,
      headers: got,
      body,
    } = await request(`${bases[0]}${PATH}`, { headers: all });
    expect([statusCode, ((await body.json()) as { code: string }).code]).toEqual([401, code]);
    expect(got['www-authenticate']).toContain('X-API-Key');
  });

  test('a key in the URL is refused with the advice to replace it', async () => {
    const key = newKey();
    const { statusCode, body } = await request(`${bases[0]}${PATH}?api_key=${key}`);
    const problem = (await body.json()) as { code: string; remedy: string };
    expect([statusCode, problem.code]).toEqual([401, 'key_in_url']);
    expect(problem.remedy).toContain('Revoke the key');
    expect(JSON.stringify(problem)).not.toContain(key);
  });

  test('refusals for tier, subscription and suspension say what to do', async () => {
    const none = await createTestAccount(db, namespace, { tier: null });
    expect((await get(bases[0]!, PATH, none.key)).body.code).toBe('subscription_required');
    const suspended = await createTestAccount(db, namespace, { tier: 'basic' });
    expect((await get(bases[0]!, PATH, suspended.key)).status).toBe(200);
    await db
      .updateTable('accounts')
      .set({ status: 'suspended' })
      .where('id', '=', suspended.id)
      .execute();
    const refused = await waitFor('the suspension', async () => {
      const answer = await get(bases[0]!, PATH, suspended.key);
      return answer.status === 403 && answer;
    });
    expect(refused.body.code).toBe('account_suspended');
    const walled = await createTestAccount(db, namespace, {
      tier: 'basic',
      allowCidrs: ['203.0.113.0/24'],
    });
    expect((await get(bases[0]!, PATH, walled.key)).body.code).toBe('address_refused');
  });
});
