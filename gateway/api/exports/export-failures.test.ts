// An engine that fails or hangs amid an export or an answer, killed processes and lost rights: no
// customer gets a file that is silently short, and no part of a file is left behind.
import { readdir, rm, utimes } from 'node:fs/promises';
import path from 'node:path';
import { sql } from 'kysely';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { databaseName, openClickHouse } from '../../../lib/clickhouse/clickhouse-client.ts';
import { createTestAccount, type TestAccount } from '../../../testing/accounts.ts';
import { testEngine } from '../../../testing/engine-addresses.ts';
import { startProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { MEDIA_TYPES } from '../server/media-type.ts';
import { openPlatform, type Platform } from '../testing/api-platform.ts';
import { EXPORT_LIMITS } from './limits.ts';
import { openStatementProxy, type StatementProxy } from './testing/statement-proxy.ts';

/** Two slices. */
const STORED = EXPORT_LIMITS.sliceRows + 21;
const RANGE = { from: '2026-01-01T00:00:00Z', to: '2026-01-04T00:00:00Z' };
/** The statement that writes the rows of a slice. */
const isSlice = (text: string) => /FORMAT (Parquet|ArrowStream)$/.test(text.trim());

let platform: Platform;
let proxy: StatementProxy;
let folder: string;

beforeAll(async () => {
  proxy = await openStatementProxy(testEngine('clickhouse'));
  platform = await openPlatform({ env: { CLICKHOUSE_URL: proxy.url } });
  const { namespace } = platform;
  const database = databaseName(namespace.name);
  folder = path.join(namespace.env.EXPORTS_FOLDER!, database);
  const clickhouse = openClickHouse({ url: namespace.engines.clickhouseUrl, database });
  await clickhouse.command({
    query: `INSERT INTO pills (epoch, partition, offset, symbol, id, timestamp, received_at,
        order_time, gross_spread_percent, market_state, confidence, prev, late, backfill)
      SELECT 'former', number % 3, number, 'BIG.T', concat('id-', toString(number)),
        toDateTime64('2026-01-02 00:00:00', 6, 'UTC') + toIntervalMillisecond(number) AS at,
        at, at, 1, 'open', 50, NULL, 0, 0
      FROM numbers(${STORED})`,
  });
  await clickhouse.close();
});
afterEach(() => {
  proxy.treat = () => undefined;
});
afterAll(async () => {
  await platform?.close();
  proxy?.close();
});

const newAccount = () =>
  createTestAccount(platform.db, platform.namespace, { tier: 'pro', scopes: ['exports'] });

async function send(method: 'GET' | 'POST' | 'DELETE', to: string, account: TestAccount) {
  const answer = await request(`${platform.url}${to}`, {
    method,
    headers: {
      'x-api-key': account.key,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
    },
    ...(method === 'POST' && { body: JSON.stringify({ ...RANGE, format: 'parquet' }) }),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, body: text === '' ? null : JSON.parse(text) };
}

async function create(account: TestAccount): Promise<string> {
  const { status, body } = await send('POST', '/api/exports', account);
  expect([status, body.code]).toEqual([202, undefined]);
  return body.id;
}

const over = (id: string) =>
  waitFor('the export to be over', async () => {
    const { rows } = await sql<{ state: string; problem: string | null; attempts: number }>`
      SELECT state, problem, attempts FROM exports WHERE id = ${id}`.execute(platform.db);
    return ['done', 'failed', 'canceled'].includes(rows[0]!.state) && rows[0]!;
  });

/** Files of the folder that belong to an export. */
const filesOf = async (id: string) =>
  (await readdir(folder)).filter((name) => name.startsWith(id)).map((name) => path.extname(name));

/** Holds statements that write slices from the given one on. @returns when one is held; `release` */
function holdSlices(of: StatementProxy, from: number) {
  let slices = 0;
  let onHeld: () => void = () => undefined;
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    onHeld = resolve;
  });
  const after = new Promise<void>((resolve) => {
    release = resolve;
  });
  of.treat = (text) => {
    if (!isSlice(text)) return undefined;
    slices += 1;
    if (slices < from) return undefined;
    onHeld();
    return { after };
  };
  return { held, release };
}

/** What happens to a statement; `id` is of a pill near the end of its rows. */
const FAULTS = {
  'an error of the engine amid the rows': (text: string, id: string) => ({
    sql: text.replace(' WHERE ', ` WHERE throwIf(id = '${id}') = 0 AND `),
  }),
  'an answer that is cut': () => ({ isCut: true }),
} as const;

describe.each(Object.entries(FAULTS))('%s', (_, fault) => {
  test('in the second slice: the next attempt is whole, and the first leaves no file', async () => {
    const account = await newAccount();
    let slices = 0;
    proxy.treat = (text) => {
      if (!isSlice(text)) return undefined;
      slices += 1;
      return slices === 2 ? fault(text, `id-${STORED - 5}`) : undefined;
    };
    const id = await create(account);
    expect(await over(id)).toEqual({ state: 'done', problem: null, attempts: 2 });
    expect(slices).toBe(4);
    const { body } = await send('GET', `/api/exports/${id}`, account);
    expect(body.file.receipt.count).toBe(STORED);
    expect(await filesOf(id)).toEqual(['.parquet']);
  });

  test.each(['arrow', 'parquet'] as const)('in a page of history as %s: 503', async (format) => {
    const accept = MEDIA_TYPES[format];
    const range = `/api/pills?symbol=BIG.T&from=${RANGE.from}&to=${RANGE.to}&limit=5000`;
    const ask = () => platform.ask(range, { headers: { accept } });
    expect((await ask()).status).toBe(200);
    proxy.treat = (text) => (isSlice(text) ? fault(text, 'id-4990') : undefined);
    const { status, body } = await ask();
    expect([status, body?.code]).toEqual([503, 'history_unavailable']);
  });
});

test('an error of the engine in each attempt ends the export', async () => {
  const account = await newAccount();
  const fault = FAULTS['an error of the engine amid the rows'];
  proxy.treat = (text) => (isSlice(text) ? fault(text, `id-${STORED - 5}`) : undefined);
  const id = await create(account);
  const attempts = EXPORT_LIMITS.attemptsMax;
  expect(await over(id)).toEqual({ state: 'failed', problem: 'export_failed', attempts });
  expect(await filesOf(id)).toEqual([]);
});

test.each([
  ['a downgrade', sql`UPDATE subscriptions SET tier = 'basic'`, 'account_id', 'tier_too_low'],
  ['a suspension', sql`UPDATE accounts SET status = 'suspended'`, 'id', 'account_suspended'],
])('%s ends a running export, which leaves no file', async (_, change, column, code) => {
  const account = await newAccount();
  const { held, release } = holdSlices(proxy, 2);
  const id = await create(account);
  await held;
  expect(await filesOf(id)).toEqual(['.part']);
  await sql`${change} WHERE ${sql.id(column)} = ${account.id}`.execute(platform.db);
  await waitFor('the change to be known', async () => {
    const { body } = await send('GET', `/api/exports/${id}`, account);
    return body.code === code || JSON.stringify(body);
  });
  release();
  expect(await over(id)).toMatchObject({ state: 'failed', problem: 'subscription_required' });
  await waitFor('the part to be deleted', async () => (await filesOf(id)).length === 0);
});

test('kill -9 amid: the part of the dead process is deleted', async () => {
  const { db, namespace } = platform;
  const own = await openStatementProxy(namespace.engines.clickhouseUrl);
  const { held, release } = holdSlices(own, 2);
  const env = { ...namespace.env, API_PORT: '0', CLICKHOUSE_URL: own.url };
  const other = await startProcess('gateway/api/main.js', [], env);
  try {
    await other.ready();
    const isHeld = held.then(() => true);
    // Either process may take an export: the first one writes it at once.
    const { id, account } = await waitFor('the other process to have an export', async () => {
      const taken = await newAccount();
      const created = await create(taken);
      const isOther = await Promise.race([isHeld, over(created).then(() => false)]);
      return isOther && { id: created, account: taken };
    });
    expect(await filesOf(id)).toEqual(['.part']);
    await other.kill();
    // The lease, without waiting for it.
    await sql`UPDATE exports SET owner_until = now() WHERE id = ${id}`.execute(db);
    expect(await over(id)).toMatchObject({ state: 'done', attempts: 2 });
    expect((await filesOf(id)).sort()).toEqual(['.parquet', '.part']);
    const part = (await readdir(folder)).find((name) => name.endsWith('.part'))!;
    await utimes(path.join(folder, part), 1, 1);
    await platform.startApi({}); // cleans at its start
    await waitFor('only the file', async () => (await filesOf(id)).join() === '.parquet');
    const { body } = await send('GET', `/api/exports/${id}`, account);
    // A file that is gone is a 404, not an answer that breaks.
    await rm(path.join(folder, (await readdir(folder)).find((name) => name.startsWith(id))!));
    expect((await request(`${platform.url}${body.file.url}`)).statusCode).toBe(404);
  } finally {
    release();
    await other.stop();
    own.close();
  }
});
