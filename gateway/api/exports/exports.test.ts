// Exports from the request to the file: formats, receipts, links, ranges, bounds, kills.
import { createHash } from 'node:crypto';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { tableFromIPC } from 'apache-arrow';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../../domain/access/id.ts';
import { readPepper } from '../../../domain/access/pepper.ts';
import { createSessions, sessionIdOf } from '../../../domain/accounts/sessions.ts';
import { databaseName, openClickHouse } from '../../../lib/clickhouse/clickhouse-client.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { parseCursor } from '../../../schemas/position.ts';
import { addToReceipt, EMPTY_RECEIPT, receiptOf } from '../../../schemas/receipt.ts';
import { formatTimestamp, parseTimestamp } from '../../../schemas/timestamp.ts';
import { createTestAccount, type TestAccount } from '../../../testing/accounts.ts';
import { makePill } from '../../../testing/pills.ts';
import { startProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openPlatform, type Platform } from '../testing/api-platform.ts';
import { signLink } from './export-link.ts';
import { EXPORT_LIMITS } from './limits.ts';

const PILLS = 600;
/** Three slices: two of the limit and a rest. */
const STORED = 2 * EXPORT_LIMITS.sliceRows + 4_321;
const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', 'TEST:X'];

let platform: Platform;
let account: TestAccount;
let range: { from: string; to: string };

beforeAll(async () => {
  platform = await openPlatform();
  const { db, namespace } = platform;
  account = await createTestAccount(db, namespace, { tier: 'pro', scopes: ['read', 'exports'] });
  const start = nowMicros() - 3_600_000_000;
  range = { from: formatTimestamp(start), to: formatTimestamp(start + 7_200_000_000) };
  await platform.write(
    Array.from({ length: PILLS }, (_, n) =>
      makePill({
        symbol: SYMBOLS[n % SYMBOLS.length]!,
        timestamp: start + n * 100_003,
        gross_spread_percent: n % 2 === 0 ? (n - 300) / 7 : 1 / (n + 1),
        confidence: n % 101,
        market_state: n % 3 === 0 ? '開場中' : 'open',
        id: `i "${n}", π`,
      }),
    ),
  );
  await platform.waitUntilStored();
});
afterAll(() => platform?.close());

type Row = Record<string, unknown>;

async function send(
  method: 'GET' | 'POST' | 'DELETE',
  to: string,
  body?: object,
  key = account.key,
) {
  const answer = await request(`${platform.url}${to}`, {
    method,
    headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: text === '' ? null : JSON.parse(text),
  };
}

async function download(url: string, headers: Record<string, string> = {}) {
  const answer = await request(`${platform.url}${url}`, { headers });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  return { status: answer.statusCode, headers: answer.headers, bytes };
}

async function finished(id: string, key = account.key) {
  return waitFor('the export to be over', async () => {
    const { body } = await send('GET', `/api/exports/${id}`, undefined, key);
    return ['done', 'failed', 'canceled'].includes(body.state) && body;
  });
}

async function exported(body: object, key = account.key) {
  // Exports of an account run one after another, and only some may be open.
  const created = await waitFor('room for an export', async () => {
    const answer = await send('POST', '/api/exports', body, key);
    return answer.status !== 429 && answer;
  });
  expect([created.status, created.body.state, created.body.code]).toEqual([
    202,
    'waiting',
    undefined,
  ]);
  const done = await finished(created.body.id, key);
  expect([done.state, done.problem]).toEqual(['done', null]);
  return { done, ...(await download(done.file.url)) };
}

const micros = (text: string) => {
  const parsed = parseTimestamp(text);
  if (!parsed.ok) throw new Error(text);
  return parsed.micros;
};

async function unzstd(bytes: Buffer): Promise<string> {
  // The engine decompresses: Node cannot before version 22.15.
  const decompress = compressors.ZSTD!;
  const frames: Buffer[] = [];
  const magic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
  for (let at = 0; at < bytes.length; ) {
    const next = bytes.indexOf(magic, at + 4);
    const end = next < 0 ? bytes.length : next;
    frames.push(Buffer.from(decompress(bytes.subarray(at, end), 64 * 1024 * 1024)));
    at = end;
  }
  return Buffer.concat(frames).toString();
}

/** The rows of a file; times in µs. */
async function rowsOf(format: string, bytes: Buffer): Promise<Row[]> {
  const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  const timed = (row: Row): Row => ({ ...row, timestamp: micros(row.timestamp as string) });
  if (format === 'arrow') {
    const table = tableFromIPC(bytes);
    const columns = table.schema.fields.map(({ name }) => [name, table.getChild(name)!] as const);
    return Array.from({ length: table.numRows }, (_, n) => {
      const row = Object.fromEntries(columns.map(([name, column]) => [name, plain(column.get(n))]));
      return { ...row, timestamp: Math.round((row.timestamp as number) * 1000) };
    });
  }
  if (format === 'parquet') {
    const file = new Uint8Array(bytes).buffer;
    const parsers = { timestampFromMicroseconds: (value: bigint) => Number(value) };
    return parquetReadObjects({ file, compressors, parsers: parsers as never });
  }
  if (format === 'ndjson.zst') {
    const lines = (await unzstd(bytes)).trimEnd().split('\n');
    return lines.map((line) => timed(JSON.parse(line)));
  }
  const { parse } = await import('csv-parse/sync');
  const rows = parse(gunzipSync(bytes), { columns: true }) as Record<string, string>[];
  return rows.map((row) =>
    timed({
      ...row,
      gross_spread_percent: Number(row.gross_spread_percent),
      confidence: Number(row.confidence),
    }),
  );
}

function receiptFor(rows: readonly Row[]) {
  const pills = rows.map((row) => ({ ...row, ...parseCursor(row.cursor as string) }) as never);
  return receiptOf(addToReceipt(EMPTY_RECEIPT, pills), platform.namespace.settings.epoch);
}

test.each(['parquet', 'arrow', 'csv.gz', 'ndjson.zst'])(
  '%s holds the pills of history, with length, digests, position and receipt',
  async (format) => {
    const { done, status, headers, bytes } = await exported({ ...range, format });
    expect(status).toBe(200);
    const sha256 = createHash('sha256').update(bytes).digest();
    expect(done.file).toMatchObject({ bytes: bytes.length, sha256: sha256.toString('hex') });
    expect(headers['content-length']).toBe(String(bytes.length));
    expect(headers['repr-digest']).toBe(`sha-256=:${sha256.toString('base64')}:`);
    expect(headers.etag).toBe(`"${sha256.toString('hex')}"`);
    expect([headers['pill-position'], done.position]).toEqual([platform.end(), platform.end()]);
    const rows = await rowsOf(format, bytes);
    expect(done.file.receipt).toEqual(receiptFor(rows));
    // The pages of history of the same pills have the same receipt.
    const { body } = await platform.ask(`/api/pills?until=${platform.end()}&limit=5000`);
    expect(body.data).toHaveLength((PILLS * 3) / 4);
    expect({ ...done.file.receipt, complete: true }).toEqual(body.receipt);
    const keys = rows.map(({ symbol, timestamp }) => `${symbol} ${timestamp}`);
    expect(keys).toEqual([...keys].sort());
  },
);

test('filters and symbols; an export without pills is a file too', async () => {
  const filter = { min_confidence: 50, max_spread: 10, min_spread: -20, states: ['open'] };
  const body = { ...range, symbols: ['7203.T', 'TEST:X'], filter, format: 'parquet' };
  const { bytes } = await exported(body);
  const rows = await rowsOf('parquet', bytes);
  expect(rows.length).toBeGreaterThan(10);
  for (const row of rows) {
    expect(['7203.T', 'TEST:X']).toContain(row.symbol);
    expect(row.market_state).toBe('open');
    expect(row.confidence).toBeGreaterThanOrEqual(50);
    expect(row.gross_spread_percent).toBeLessThanOrEqual(10);
    expect(row.gross_spread_percent).toBeGreaterThanOrEqual(-20);
  }
  const none = await exported({ ...range, symbols: ['NONE.T'], format: 'parquet' });
  expect([none.done.file.receipt.count, none.done.file.receipt.first]).toEqual([0, null]);
  expect(await rowsOf('parquet', none.bytes)).toEqual([]);
});

test('the cost is stated before, free of charge; an export is one call', async () => {
  const { key } = await createTestAccount(platform.db, platform.namespace, {
    tier: 'pro',
    scopes: ['exports'],
    callsPerDay: 1,
  });
  const body = { ...range, format: 'parquet' };
  for (const _ of [1, 2]) {
    const { status, body: answer } = await send('POST', '/api/exports?dry_run=true', body, key);
    expect([status, answer.estimate.rows, answer.estimate.calls]).toEqual([
      200,
      (PILLS * 3) / 4,
      1,
    ]);
  }
  const { status, body: created } = await send('POST', '/api/exports', body, key);
  expect([status, created.estimate.rows]).toEqual([202, (PILLS * 3) / 4]);
  expect((await send('POST', '/api/exports', body, key)).body.code).toBe('daily_quota_exceeded');
  await finished(created.id, key);
});

describe('links', () => {
  let file: { url: string; bytes: number };
  let id: string;
  let whole: Buffer;
  beforeAll(async () => {
    const { done, bytes } = await exported({ ...range, format: 'csv.gz' });
    [file, id, whole] = [done.file, done.id, bytes];
  });

  test('a download continues where it broke, by range and If-Range', async () => {
    const etag = `"${createHash('sha256').update(whole).digest('hex')}"`;
    const rest = await download(file.url, { range: 'bytes=100-', 'if-range': etag });
    expect([rest.status, rest.headers['content-range']]).toEqual([
      206,
      `bytes 100-${whole.length - 1}/${whole.length}`,
    ]);
    expect(Buffer.concat([whole.subarray(0, 100), rest.bytes]).equals(whole)).toBe(true);
    const last = await download(file.url, { range: 'bytes=-5' });
    expect(last.bytes.equals(whole.subarray(-5))).toBe(true);
    const other = await download(file.url, { range: 'bytes=100-', 'if-range': '"other"' });
    expect([other.status, other.bytes.equals(whole)]).toEqual([200, true]);
    const beyond = await download(file.url, { range: `bytes=${whole.length}-` });
    expect([beyond.status, beyond.headers['content-range']]).toEqual([
      416,
      `bytes */${whole.length}`,
    ]);
    expect((await download(file.url, { 'if-none-match': etag })).status).toBe(304);
    const many = await download(file.url, { range: 'bytes=0-1,3-4' });
    expect([many.status, many.bytes.length]).toEqual([200, whole.length]);
  });

  test('a changed link is refused', async () => {
    const url = new URL(file.url, platform.url);
    for (const [name, value] of [
      ['expires', String(Number(url.searchParams.get('expires')) + 1)],
      ['by', 'session'],
      ['signature', 'x'.repeat(43)],
    ] as const) {
      const changed = new URL(url);
      changed.searchParams.set(name, value);
      const { status, bytes } = await download(`${changed.pathname}${changed.search}`);
      expect([status, JSON.parse(String(bytes)).code]).toEqual([403, 'link_invalid']);
    }
    const others = url.pathname.replace(id, 'exp_aaaaaaaaaaaa');
    expect((await download(`${others}${url.search}`)).status).toBe(403);
  });

  test('ends with the key that asked for it, and with the subscription', async () => {
    const other = await createTestAccount(platform.db, platform.namespace, {
      tier: 'pro',
      scopes: ['exports'],
    });
    const { done } = await exported({ ...range, format: 'csv.gz' }, other.key);
    const refused = () =>
      waitFor('the link to be refused', async () => (await download(done.file.url)).status === 403);
    expect((await download(done.file.url)).status).toBe(200);
    await sql`UPDATE subscriptions SET tier = 'basic' WHERE account_id = ${other.id}`.execute(
      platform.db,
    );
    await refused();
    await sql`UPDATE subscriptions SET tier = 'pro' WHERE account_id = ${other.id}`.execute(
      platform.db,
    );
    await waitFor('the link again', async () => (await download(done.file.url)).status === 200);
    await sql`UPDATE api_keys SET revoked_at = now() WHERE account_id = ${other.id}`.execute(
      platform.db,
    );
    await refused();
    // A scheme of the account signs for its own links.
    const by = 'aut_aaaaaaaaaaaa';
    await sql`INSERT INTO authentication_schemes (id, account_id, name, kind, algorithms, scopes, created_by, is_on)
      VALUES (${by}, ${other.id}, 'desk', 'signature', '{ed25519}', '{exports}', 'test', true)`.execute(
      platform.db,
    );
    const pepper = readPepper(platform.namespace.env.KEY_PEPPER_FILE!);
    const { path: signed } = signLink(done.id, by, Math.floor(Date.now() / 1000), pepper);
    expect((await download(signed)).status).toBe(200);
    await sql`UPDATE authentication_schemes SET is_on = false WHERE id = ${by}`.execute(
      platform.db,
    );
    expect((await download(signed)).status).toBe(403);
  });

  test('ends with the sign-in that asked for it', async () => {
    const { db } = platform;
    const account = await createTestAccount(db, platform.namespace, { tier: 'institutional' });
    const { done } = await exported({ ...range, format: 'csv.gz' }, account.key);
    const id = newId('usr');
    const user = { id, account_id: account.id, email: `${id}@example.com`, password_hash: '' };
    await db
      .insertInto('users')
      .values({ ...user, role: 'read_only' })
      .execute();
    const { session, token } = await createSessions(db).begin(id, '127.0.0.1');
    const pepper = readPepper(platform.namespace.env.KEY_PEPPER_FILE!);
    const nowS = Math.floor(Date.now() / 1000);
    const { path: signed } = signLink(done.id, sessionIdOf(session), nowS, pepper);
    const answered = (status: number) =>
      waitFor(`${status} for the link`, async () => (await download(signed)).status === status);
    await answered(200);
    await db.updateTable('users').set({ role: 'billing' }).where('id', '=', id).execute();
    await answered(403);
    await db.updateTable('users').set({ role: 'read_only' }).where('id', '=', id).execute();
    await answered(200);
    await createSessions(db).end(token);
    await answered(403);
  });

  test('of a removed export leads nowhere, and its file is deleted', async () => {
    const { done } = await exported({ ...range, format: 'csv.gz' });
    expect((await send('DELETE', `/api/exports/${done.id}`)).status).toBe(204);
    expect((await download(done.file.url)).status).toBe(404);
    expect((await send('GET', `/api/exports/${done.id}`)).status).toBe(404);
  });
});

test.each([
  [{ format: 'xml' }, 'format'],
  [{ from: 'yesterday' }, 'from'],
  [{ from: '0000-00-00T00:00:00Z' }, 'timestamp_out_of_range'],
  [{ to: '2020-01-01T00:00:00Z' }, 'to'],
  [{ symbols: ['lower'] }, 'symbols'],
  [{ filter: { min_conf: 1 } }, 'filter'],
  [{ from: '2026-01-01T00:00:00Z', to: '2026-06-01T00:00:00Z' }, 'range_too_large'],
])('%o is refused with what to do', async (change, named) => {
  const { status, body } = await send('POST', '/api/exports', {
    ...range,
    format: 'parquet',
    ...change,
  });
  expect([status, body.code]).toEqual([400, 'body_invalid']);
  expect(JSON.stringify(body.errors)).toContain(named);
});

test('who may not: another scope, Basic; others see nothing', async () => {
  const { db, namespace } = platform;
  const reader = await createTestAccount(db, namespace, { tier: 'pro', scopes: ['read'] });
  const basic = await createTestAccount(db, namespace, { tier: 'basic', scopes: ['exports'] });
  const body = { ...range, format: 'parquet' };
  expect((await send('POST', '/api/exports', body, reader.key)).body.code).toBe('scope_missing');
  expect((await send('POST', '/api/exports', body, basic.key)).body.code).toBe('tier_too_low');
});

describe('an export of several slices', () => {
  const BIG = {
    symbols: ['BIG.T', 'MORE.T'],
    from: '2026-01-01T00:00:00Z',
    to: '2026-01-04T00:00:00Z',
  };

  beforeAll(async () => {
    const { namespace } = platform;
    const clickhouse = openClickHouse({
      url: namespace.engines.clickhouseUrl,
      database: databaseName(namespace.name),
    });
    // Pills of a former log. Those of one timestamp cross the end of a slice.
    await clickhouse.command({
      query: `INSERT INTO pills (epoch, partition, offset, symbol, id, timestamp, received_at,
          order_time, gross_spread_percent, market_state, confidence, prev, late, backfill)
        SELECT 'former', number % 3, number, if(number < 150000, 'BIG.T', 'MORE.T') AS symbol,
          concat('id-', toString(number)) AS id,
          toDateTime64('2026-01-02 00:00:00', 6, 'UTC') + toIntervalMicrosecond(intDiv(number, 700) * 1000003) AS timestamp,
          timestamp + toIntervalMicrosecond(5), timestamp, sin(number), concat('state ', toString(number % 17)),
          number % 101, if(number % 5 = 0, NULL, number), number % 7 = 0, number % 11 = 0
        FROM numbers(${STORED})`,
    });
    await clickhouse.close();
  });

  test.each(['parquet', 'arrow', 'csv.gz', 'ndjson.zst'])(
    '%s: each pill once, in order',
    async (format) => {
      const { done, bytes } = await exported({ ...BIG, format });
      const rows = await rowsOf(format, bytes);
      expect(rows).toHaveLength(STORED);
      expect(done.file.receipt.count).toBe(STORED);
      const ids = rows.map(({ symbol, timestamp, id }) => `${symbol} ${timestamp} ${id}`);
      expect(new Set(ids).size).toBe(STORED);
      expect(done.file.receipt).toEqual(receiptFor(rows));
      if (format === 'parquet') {
        const { row_groups } = parquetMetadata(new Uint8Array(bytes).buffer);
        expect(row_groups.map(({ num_rows }) => Number(num_rows))).toEqual([
          100_000, 100_000, 4_321,
        ]);
      }
    },
  );

  test('killed amid: another process makes it from the beginning; nothing stays behind', async () => {
    const { db, namespace } = platform;
    const { key } = await createTestAccount(db, namespace, { tier: 'institutional' });
    /** Creates exports until one is seen while it is written; it ends within a second. */
    const caught = async () => {
      for (let tries = 0; tries < 15; tries += 1) {
        const { body } = await send('POST', '/api/exports', { ...BIG, format: 'parquet' }, key);
        const row = await waitFor('the export to begin', async () => {
          const { rows } = await sql<{ state: string; owner: string | null }>`
            SELECT state, owner FROM exports WHERE id = ${body.id}`.execute(db);
          return rows[0]!.state !== 'waiting' && rows[0]!;
        });
        if (row.owner !== null) return { id: body.id as string, owner: row.owner };
      }
      throw new Error('No export was seen while it was written.');
    };
    const first = await caught();
    await finished(first.id, key);
    const other = await startProcess('gateway/api/main.js', [], {
      ...namespace.env,
      API_PORT: '0',
    });
    await other.ready();
    const { id } = await waitFor('the other process to have an export', async () => {
      const one = await caught();
      if (one.owner !== first.owner) return one;
      await finished(one.id, key);
      return false;
    });
    other.child.kill('SIGKILL');
    // The lease, without waiting for it.
    await sql`UPDATE exports SET owner_until = now() WHERE id = ${id}`.execute(db);
    const done = await finished(id, key);
    expect([done.state, done.file.receipt.count]).toEqual(['done', STORED]);
    await other.stop();
  });

  test('cancel ends it; files without a row are deleted', async () => {
    const { db, namespace } = platform;
    const { body } = await send('POST', '/api/exports', { ...BIG, format: 'csv.gz' });
    expect((await send('DELETE', `/api/exports/${body.id}`)).status).toBe(204);
    expect((await finished(body.id)).state).toBe('canceled');
    const folder = path.join(namespace.env.EXPORTS_FOLDER!, databaseName(namespace.name));
    const orphan = path.join(folder, 'exp_of_a_dead_process.parquet.part');
    await writeFile(orphan, 'x');
    await utimes(orphan, 1, 1);
    await sql`UPDATE exports SET finished_at = now() - interval '25 hours'`.execute(db);
    const api = await platform.startApi({}); // cleans at its start
    await waitFor('the folder to be empty', async () => {
      await sql`SELECT 1`.execute(db);
      const names = await readdir(folder);
      for (const name of names) await utimes(path.join(folder, name), 1, 1).catch(() => undefined);
      return names.length === 0 || names.join();
    });
    expect((await send('GET', '/api/exports')).body.data).toEqual([]);
    expect(api).toMatch(/^http/);
  });

  test('bounds: of an account at a time, in a day, and of all', async () => {
    const { db } = platform;
    const body = { ...range, format: 'parquet' };
    await sql`INSERT INTO exports (id, account_id, created_by, request, state, epoch, position, rows_estimated, owner, owner_until)
      SELECT 'exp_' || lpad(n::text, 12, '0'), ${account.id}, 'test', '{}', 'running', 'k', 'k:', 0, 'x', now() + interval '1 hour'
      FROM generate_series(1, ${EXPORT_LIMITS.openOfAccountMax}) n`.execute(db);
    const open = await send('POST', '/api/exports', body);
    expect([open.status, open.body.code]).toEqual([429, 'export_limit']);
    await sql`DELETE FROM exports`.execute(db);
    await sql`INSERT INTO exports (id, account_id, created_by, request, state, epoch, position, rows_estimated, finished_at, bytes)
      VALUES ('exp_000000000009', ${account.id}, 'test', '{}', 'done', 'k', 'k:', 0, now(), ${EXPORT_LIMITS.allBytesMax})`.execute(
      db,
    );
    const full = await send('POST', '/api/exports', body);
    expect([full.status, full.body.code]).toEqual([503, 'export_storage_full']);
    await sql`DELETE FROM exports`.execute(db);
    // Removed exports count as well.
    await sql`INSERT INTO audit_log (account_id, actor, action)
      SELECT ${account.id}, 'test', 'export.created'
      FROM generate_series(1, ${EXPORT_LIMITS.dailyOfAccountMax})`.execute(db);
    const daily = await send('POST', '/api/exports', body);
    expect([daily.status, daily.body.code, daily.body.limit]).toEqual([429, 'export_limit', 20]);
  });
});
