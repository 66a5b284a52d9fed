import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
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
  await getAt('/api/account');
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

/**
 * Gets an answer that includes a position. The API waits a second for the position and for the
 * account; on a busy machine both take longer.
 */
const getAt = (path: string, headers: Record<string, string> = {}) =>
  waitFor(path, async () => {
    const answer = await get(path, headers);
    const isLate = ['position_not_reached', 'accounts_unavailable'].includes(answer.body?.code);
    return isLate ? answer.text : answer;
  });

/** Writes pills. @returns the position that includes them all */
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
  test('404 no_pill before the first pill', async () => {
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
    const answer = await getAt(`/api/pills/latest?symbol=7203.T&at_least=${position}`);
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

  test('many symbols: each in data or in errors, never truncated', async () => {
    const { position } = await write({ symbol: 'A.T' }, { symbol: 'B.T' });
    const answer = await getAt(`/api/pills/latest?symbols=A.T,B.T,NONE.T,bad&at_least=${position}`);
    expect(Object.keys(answer.body.data)).toEqual(['A.T', 'B.T']);
    expect(answer.body.errors).toMatchObject({
      'NONE.T': { code: 'no_pill' },
      bad: { code: 'symbol_malformed' },
    });
    expect(answer.body.position).toMatch(/:/);
  });

  test('the newest of all is by order time and excludes test symbols', async () => {
    const newest = await write({ symbol: 'NEWEST.T' });
    const { position } = await write(
      { symbol: 'TEST:CANARY' },
      { symbol: 'OLD.T', timestamp: 5e12 },
    );
    const named = await getAt(`/api/pills/latest?symbol=TEST:CANARY&at_least=${position}`);
    expect(named.status).toBe(200);
    const all = await getAt(`/api/pills/latest?at_least=${newest.position}`);
    expect(all.body.data.symbol).toBe('NEWEST.T');
    const old = await get('/api/pills/latest?symbol=OLD.T');
    expect(old.body.data).toMatchObject({ backfill: true, prev: null });
  });

  test('the ETag names the pill: 304 until there is a newer one', async () => {
    const { position } = await write({ symbol: 'TAG.T' });
    const first = await getAt(`/api/pills/latest?symbol=TAG.T&at_least=${position}`);
    const etag = String(first.headers.etag);
    for (const header of [etag, `"x", ${etag}`, '*', etag.slice(2)]) {
      const again = await get('/api/pills/latest?symbol=TAG.T', { 'if-none-match': header });
      expect([again.status, again.text]).toEqual([304, '']);
    }
    const next = await write({ symbol: 'TAG.T' });
    const changed = await getAt(`/api/pills/latest?symbol=TAG.T&at_least=${next.position}`, {
      'if-none-match': etag,
    });
    expect(changed.status).toBe(200);
    const many = await get('/api/pills/latest?symbols=TAG.T,A.T');
    const same = await get('/api/pills/latest?symbols=TAG.T,A.T', {
      'if-none-match': String(many.headers.etag),
    });
    expect(same.status).toBe(304);
  });

  test('at_least waits for a pill that is under way', async () => {
    // The API waits for a second, in which a pill does not always come on a busy machine.
    const [got, id] = await waitFor('an answer within the wait', async () => {
      const { acks } = await write({ symbol: 'WAIT.T' });
      const next = formatCursor(acks[0]!.partition, acks[0]!.offset + 1);
      const ahead = `${namespace.settings.epoch}:${next}`;
      const waiting = get(`/api/pills/latest?symbol=WAIT.T&at_least=${ahead}`);
      const { pills } = await write({ symbol: 'WAIT.T' });
      const answer = await waiting;
      if (answer.status !== 200) return answer.text;
      return [answer.body.data.id, pills[0]!.id] as const;
    });
    expect(got).toBe(id);
  });

  test('at_least is 503 while the view is behind, and 409 beyond the end of the log', async () => {
    latest.child.kill('SIGSTOP');
    try {
      const { position } = await write({ symbol: 'WAIT.T' });
      const behind = await get(`/api/pills/latest?symbol=WAIT.T&at_least=${position}`);
      expect([behind.status, behind.headers['retry-after']]).toEqual([503, '1']);
      expect(behind.body).toMatchObject({ code: 'position_not_reached', retry: 'after' });
    } finally {
      latest.child.kill('SIGCONT');
    }
    const never = `${namespace.settings.epoch}:0-999999999`;
    const beyond = await waitFor('an answer about the end of the log', async () => {
      const answer = await get(`/api/pills/latest?symbol=WAIT.T&at_least=${never}`);
      return answer.status === 409 ? answer : answer.text;
    });
    expect(beyond.body).toMatchObject({ code: 'position_ahead', retry: 'never' });
    // The end that the problem names can be asked for.
    const { position } = beyond.body;
    expect((await getAt(`/api/pills/latest?symbol=WAIT.T&at_least=${position}`)).status).toBe(200);
  });

  test('a repeat moves the position too', async () => {
    const { pills } = await write({ symbol: 'AGAIN.T' });
    const { position } = await write(pills[0]!);
    expect((await getAt(`/api/pills/latest?symbol=AGAIN.T&at_least=${position}`)).status).toBe(200);
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
    const answer = await getAt(`/api/pills/latest?at_least=${position}`);
    expect([answer.status, answer.body.code]).toEqual([410, 'position_unknown']);
  });

  test.each([
    ['POST', '/api/pills/latest', '{bad', 405],
    ['DELETE', '/api/pills/latest', '', 405],
    ['POST', '/nope', '{bad', 404],
    ['POST', '/nope', '['.repeat(2_000_000), 404],
  ] as const)(
    '%s %s with an unread body is still refused by its path or method',
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

  test('other methods are 405 and other paths 404', async () => {
    const { statusCode, headers, body } = await request(`${base}/api/pills/latest`, {
      method: 'PUT',
    });
    await body.dump();
    expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD']);
    expect((await get('/api/pillole')).status).toBe(404);
  });
});

test('GET /api/status reports version, position and measured latency', async () => {
  const { position } = await write({ symbol: 'STATUS.T' });
  await getAt(`/api/pills/latest?at_least=${position}`);
  const { status, body } = await waitFor('all components to be up', async () => {
    const answer = await get('/api/status');
    return answer.body.status === 'ok' ? answer : answer.text;
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    version: '1.0',
    epoch: namespace.settings.epoch,
    components: { log: { state: 'up' } },
  });
  // A stopped processor is reported even if everything else is healthy.
  latest.child.kill('SIGSTOP');
  try {
    await write({ symbol: 'STALLED.T' });
    const stalled = await waitFor('the stall to be reported', async () => {
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
  expect((await getAt(`/api/pills/latest?symbol=REBUILD.T&at_least=${position}`)).status).toBe(200);
  const port = new URL(base).port;
  await api.kill();
  api = await startProcess('gateway/api/main.js', [], { ...namespace.env, API_PORT: port });
  await api.ready();
  const answer = await getAt('/api/pills/latest?symbol=REBUILD.T');
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body.data.id).toBe(pills[0]!.id);
});
