import getPort from 'get-port';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { formatCursor } from '../../schemas/position.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';

let namespace: Namespace;
let writer: PillWriter;
let latest: TestProcess;
let api: TestProcess;
let base: string;
let db: Database;
let account: TestAccount;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  account = await createTestAccount(db, namespace, { tier: 'institutional' });
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  api = await startProcess('gateway/api/main.js', [], { ...namespace.env, API_PORT: String(port) });
  await Promise.all([latest.ready(), api.ready()]);
});

afterAll(async () => {
  await Promise.all([api?.stop(), latest?.stop()]);
  await writer?.close();
  await db?.destroy();
});

async function get(path: string, headers: Record<string, string> = {}) {
  const {
    statusCode,
    headers: answered,
    body,
  } = await request(`${base}${path}`, {
    headers: { 'x-api-key': account.key, ...headers },
  });
  const text = await body.text();
  return {
    status: statusCode,
    headers: answered,
    text,
    body: text === '' ? null : JSON.parse(text),
  };
}

/** Writes pills and gives the position that holds them all. */
async function write(...pills: Parameters<typeof makePill>[0][]) {
  const made = pills.map((fields) => makePill(fields));
  const acks = await writer.write(made);
  const offsets = acks.map(({ partition, offset }) => formatCursor(partition, offset));
  const highest = new Map(acks.map(({ partition, offset }) => [partition, offset]));
  const parts = [...highest].map(([partition, offset]) => formatCursor(partition, offset));
  return {
    pills: made,
    acks,
    cursors: offsets,
    position: `${namespace.settings.epoch}:${parts.join(',')}`,
  };
}

describe('GET /api/pills/latest', () => {
  test('nothing received yet is 404 no_pill', async () => {
    const answer = await get('/api/pills/latest?symbol=NEVER.T');
    expect(answer.status).toBe(404);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.body).toMatchObject({ type: '/problems/no-pill', code: 'no_pill', status: 404 });
  });

  test('one symbol: exactly the body of the contract, as soon as at_least is reached', async () => {
    const { pills, acks, cursors, position } = await write(
      { symbol: '7203.T' },
      { symbol: '7203.T', gross_spread_percent: 0.1 + 0.2, market_state: 'open' },
    );
    const answer = await get(`/api/pills/latest?symbol=7203.T&at_least=${position}`);
    expect(answer.status).toBe(200);
    expect(answer.headers['api-version']).toBe('1.0');
    expect(answer.body).toEqual({
      data: {
        cursor: cursors[1],
        prev: cursors[0],
        id: pills[1]!.id,
        timestamp: formatTimestamp(pills[1]!.timestamp),
        symbol: '7203.T',
        gross_spread_percent: 0.30000000000000004,
        market_state: 'open',
        confidence: 87.5,
        received_at: formatTimestamp(acks[1]!.appendedAt),
      },
      position: expect.stringMatching(new RegExp(`^${namespace.settings.epoch}:`)),
    });
  });

  test('many symbols: each in data or in errors, never cut', async () => {
    const { position } = await write({ symbol: 'A.T' }, { symbol: 'B.T' });
    const answer = await get(`/api/pills/latest?symbols=A.T,B.T,NONE.T,bad&at_least=${position}`);
    expect(Object.keys(answer.body.data)).toEqual(['A.T', 'B.T']);
    expect(answer.body.errors).toMatchObject({
      'NONE.T': { code: 'no_pill' },
      bad: { code: 'symbol_malformed' },
    });
    expect(answer.body.position).toMatch(/:/);
  });

  test('the newest of all goes by order time and leaves test symbols out', async () => {
    const newest = await write({ symbol: 'NEWEST.T' });
    const { position } = await write(
      { symbol: 'TEST:CANARY' },
      { symbol: 'OLD.T', timestamp: 5e12 },
    );
    const named = await get(`/api/pills/latest?symbol=TEST:CANARY&at_least=${position}`);
    expect(named.status).toBe(200);
    const all = await get(`/api/pills/latest?at_least=${newest.position}`);
    expect(all.body.data.symbol).toBe('NEWEST.T');
    const old = await get('/api/pills/latest?symbol=OLD.T');
    expect(old.body.data).toMatchObject({ backfill: true, prev: null });
  });

  test('the ETag names the pill: 304 until there is a newer one', async () => {
    const { position } = await write({ symbol: 'TAG.T' });
    const first = await get(`/api/pills/latest?symbol=TAG.T&at_least=${position}`);
    const etag = String(first.headers.etag);
    for (const header of [etag, `"x", ${etag}`, '*', etag.slice(2)]) {
      const again = await get('/api/pills/latest?symbol=TAG.T', { 'if-none-match': header });
      expect([again.status, again.text]).toEqual([304, '']);
    }
    const next = await write({ symbol: 'TAG.T' });
    const changed = await get(`/api/pills/latest?symbol=TAG.T&at_least=${next.position}`, {
      'if-none-match': etag,
    });
    expect(changed.status).toBe(200);
    const many = await get('/api/pills/latest?symbols=TAG.T,A.T');
    const same = await get('/api/pills/latest?symbols=TAG.T,A.T', {
      'if-none-match': String(many.headers.etag),
    });
    expect(same.status).toBe(304);
  });

  test('at_least waits for a pill that is still on its way, and says 503 after a second', async () => {
    const { acks } = await write({ symbol: 'WAIT.T' });
    const ahead = `${namespace.settings.epoch}:${formatCursor(acks[0]!.partition, acks[0]!.offset + 1)}`;
    const waiting = get(`/api/pills/latest?symbol=WAIT.T&at_least=${ahead}`);
    const { pills } = await write({ symbol: 'WAIT.T' });
    expect((await waiting).body.data.id).toBe(pills[0]!.id);
    const never = `${namespace.settings.epoch}:0-999999999`;
    const answer = await get(`/api/pills/latest?symbol=WAIT.T&at_least=${never}`);
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.body).toMatchObject({ code: 'position_not_reached', retry: 'after' });
  });

  test('a repeat moves the position too', async () => {
    const { pills } = await write({ symbol: 'AGAIN.T' });
    const { position } = await write(pills[0]!);
    expect((await get(`/api/pills/latest?symbol=AGAIN.T&at_least=${position}`)).status).toBe(200);
  });

  test.each([
    ['symbol=', 'symbol_malformed'],
    ['symbols=', 'symbol_malformed'],
    ['symbol=lower', 'symbol_malformed'],
    ['symbol=%00', 'symbol_malformed'],
    ["symbol=A'%20OR%201=1", 'symbol_malformed'],
    ['symbol=A&symbol=B', 'parameter_repeated'],
    ['symbol=A&symbols=B', 'parameters_exclusive'],
    [`symbols=${Array.from({ length: 101 }, (_, i) => `S${i}`).join(',')}`, 'too_many'],
    ['symbl=A', 'parameter_unknown'],
    ['__proto__=A', 'parameter_unknown'],
    ['at_least=x', 'position_malformed'],
    ['at_least=3-104', 'position_malformed'],
    ['%ff=%ff', 'parameter_unknown'],
  ])('?%s is 400 %s', async (query, code) => {
    const answer = await get(`/api/pills/latest?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe('parameter_invalid');
    expect(answer.body.errors.map((fault: { code: string }) => fault.code)).toContain(code);
  });

  test.each(['other:0-1', 'EPOCH:99-1'])('a position of another log (%s) is 410', async (text) => {
    const position = text.replace('EPOCH', namespace.settings.epoch);
    const answer = await get(`/api/pills/latest?at_least=${position}`);
    expect([answer.status, answer.body.code]).toEqual([410, 'position_unknown']);
  });

  test.each([
    ['POST', '/api/pills/latest', '{bad', 405],
    ['DELETE', '/api/pills/latest', '', 405],
    ['POST', '/nope', '{bad', 404],
    ['POST', '/nope', '['.repeat(2_000_000), 404],
  ] as const)(
    '%s %s with a body nobody reads is told as such',
    async (method, path, sent, status) => {
      const headers = { 'content-type': 'application/json' };
      const { statusCode, body } = await request(`${base}${path}`, { method, headers, body: sent });
      await body.dump();
      expect(statusCode).toBe(status);
      expect((await get('/api/status')).status).toBe(200);
    },
  );

  test('HEAD is GET without its body', async () => {
    const { statusCode, body } = await request(`${base}/api/status`, { method: 'HEAD' });
    expect([statusCode, await body.text()]).toEqual([200, '']);
  });

  test('other methods and paths are told', async () => {
    const { statusCode, headers, body } = await request(`${base}/api/pills/latest`, {
      method: 'PUT',
    });
    await body.dump();
    expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD']);
    expect((await get('/api/pillole')).status).toBe(404);
  });
});

test('GET /api/status tells version, position and measured latency', async () => {
  const { position } = await write({ symbol: 'STATUS.T' });
  await get(`/api/pills/latest?at_least=${position}`);
  const { status, body } = await get('/api/status');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    status: 'ok',
    version: '1.0',
    epoch: namespace.settings.epoch,
    components: { log: { state: 'up' } },
  });
  // A processor that stops is told, though everything else is well.
  latest.child.kill('SIGSTOP');
  try {
    await write({ symbol: 'STALLED.T' });
    const stalled = await waitFor('the stall to be told', async () => {
      const now = await get('/api/status');
      return now.body.components.latest.state === 'stalled' && now.body;
    });
    expect(stalled).toMatchObject({
      status: 'degraded',
      components: { log: { state: 'up' }, latest: { state: 'stalled', lag_records: 1 } },
    });
  } finally {
    latest.child.kill('SIGCONT');
  }
  await waitFor('the recovery', async () => (await get('/api/status')).body.status === 'ok');
  expect(body.latency.count).toBeGreaterThan(0);
  expect(body.latency.p99_ms).toBeGreaterThan(0);
});

test('after kill -9 the view is rebuilt from the compacted topic before it is ready', async () => {
  const { pills, position } = await write({ symbol: 'REBUILD.T' });
  expect((await get(`/api/pills/latest?symbol=REBUILD.T&at_least=${position}`)).status).toBe(200);
  const port = new URL(base).port;
  await api.kill();
  api = await startProcess('gateway/api/main.js', [], { ...namespace.env, API_PORT: port });
  await api.ready();
  const answer = await get('/api/pills/latest?symbol=REBUILD.T');
  expect(answer.body.data.id).toBe(pills[0]!.id);
});
