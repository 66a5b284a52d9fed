import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { migrateClickHouse } from '../../provision-clickhouse.ts';
import { ANALYST_LIMITS } from './limits.ts';
import { LISTS, OTHER_ATTACKS, READS_OF_A_TABLE, SPELLINGS } from './testing/attacks.ts';
import {
  endTestServer,
  ownerUrl,
  post,
  startTestServer,
  type TestServer,
} from './testing/test-server.ts';

/** All that an analyst may read, in the database `pillole`. A new table is not on the list. */
const READABLE = [
  ...['bars', 'intervals', 'movers', 'pills', 'pills_once', 'span_bars', 'states', 'summary'],
  'track_record',
];
/** Stands in every row that analysts may not read. */
const SECRET = 'whsec_of_another_customer';
const ATTEMPTS = 'customers_pillole.webhook_attempts';

let server: TestServer;
const owner = async (sql: string) => {
  const { status, text } = await post(server, sql, { database: 'pillole' });
  if (status !== 200) throw new Error(text);
  return text.split('\n').filter(Boolean);
};
const ask = (sql: string, search: Record<string, string> = {}) =>
  post(server, sql, { user: 'analyst', database: 'pillole', ...search });

beforeAll(async () => {
  server = await startTestServer();
  await migrateClickHouse({ clickhouseUrl: ownerUrl(server), namespace: '' });
  await owner(`INSERT INTO pills (symbol, id) VALUES ('7203.T', 'first')`);
  await owner(
    `INSERT INTO ${ATTEMPTS} (at, body, message_id) VALUES (now(), '${SECRET}', 'first')`,
  );
  // A table that is not listed, beside those of the market.
  await owner(`CREATE TABLE unlisted ENGINE = MergeTree ORDER BY body AS
    SELECT body FROM ${ATTEMPTS}`);
  await owner('CREATE VIEW unlisted_view AS SELECT * FROM unlisted');
  await owner('CREATE VIEW unlisted_call AS SELECT * FROM pills WHERE symbol = {symbol:String}');
});
afterAll(async () => {
  if (server === undefined) return;
  await endTestServer(server);
  rmSync(server.folder, { recursive: true, force: true });
});

describe('an analyst reads the listed tables and views, and no others', () => {
  test('of all tables of the engine', async () => {
    const tables = await owner('SELECT database, name FROM system.tables ORDER BY ALL');
    expect(tables.length).toBeGreaterThan(100);
    const readable: string[] = [];
    for (const table of tables) {
      const name = table.replace('\t', '.');
      const { status, text } = await ask(`SELECT * FROM ${name} LIMIT 1`);
      // A view with parameters: the engine looks at the grants only when they are given.
      const isCall = text.includes('EMPTY_LIST_OF_COLUMNS');
      const isRead = isCall ? (await ask(`EXISTS TABLE ${name}`)).status === 200 : status === 200;
      if (isRead) readable.push(name);
      expect(text, table).not.toContain(SECRET);
    }
    const orientation = [
      ...['columns', 'data_type_families', 'databases', 'formats', 'functions', 'numbers', 'one'],
      ...['settings', 'table_functions', 'tables', 'time_zones'],
    ];
    expect(readable.filter((name) => !/^information_schema\./i.test(name))).toEqual([
      ...READABLE.map((name) => `pillole.${name}`),
      ...orientation.map((name) => `system.${name}`),
    ]);
  });

  test('and sees no others in lists', async () => {
    const { text } = await ask("SELECT name FROM system.tables WHERE database != 'system'");
    expect(text.split('\n').filter(Boolean).sort()).toEqual(READABLE);
    for (const sql of LISTS) {
      const answer = await ask(sql);
      expect([sql, answer.status]).toEqual([sql, 200]);
      expect(answer.text, sql).not.toMatch(/unlisted|webhook|body|customers/);
    }
  });

  test('neither by the database of a request nor by names in parameters', async () => {
    const sql = 'SELECT * FROM webhook_attempts';
    expect((await ask(sql, { database: 'customers_pillole' })).status).toBe(403);
    const spread = { param_d: 'customers_pillole', param_t: 'webhook_attempts' };
    expect((await ask('SELECT * FROM {d:Identifier}.{t:Identifier}', spread)).status).toBe(403);
    const whole = { param_t: ATTEMPTS };
    expect((await ask('SELECT * FROM {t:Identifier}', whole)).status).toBe(404);
    const processes = { param_t: 'system.processes' };
    expect((await ask('SELECT * FROM {t:Identifier}', processes)).status).toBe(403);
    const name = { param_f: 'file' };
    expect((await ask("SELECT arrayMap({f:Identifier}, ['a'])", name)).status).toBe(403);
  });

  test('the engine itself refuses, by its grants', async () => {
    const call = "unlisted_call(symbol = '7203.T')";
    for (const table of [ATTEMPTS, 'unlisted', 'pillole.unlisted_view', call]) {
      const { text } = await ask(`SELECT * FROM ${table}`);
      expect(text).toMatch(/Code: 497.*analyst: Not enough privileges.*grant SELECT/);
    }
  });
});

describe('attacks', () => {
  const targets = [...SPELLINGS, 'unlisted', 'pillole.unlisted_view'];

  test.each(READS_OF_A_TABLE)('%s', async (template) => {
    for (const target of targets) {
      const { status, text } = await ask(template.replaceAll('@', () => target));
      expect(status, target).toBeGreaterThanOrEqual(400);
      expect(text).not.toContain(SECRET);
    }
  });

  test.each(OTHER_ATTACKS)('%s', async (sql) => {
    const { status, text } = await ask(sql);
    expect(status, text).toBeGreaterThanOrEqual(400);
    expect(text).not.toContain(SECRET);
  });

  test('have changed nothing', async () => {
    expect(await owner(`SELECT body FROM ${ATTEMPTS}`)).toEqual([SECRET]);
    expect(await owner('SELECT count() FROM pills')).toEqual(['1']);
    expect(await owner("SELECT name FROM system.tables WHERE name = 'stolen'")).toEqual([]);
    expect(existsSync('/tmp/pillole-outfile')).toBe(false);
  });

  test.each([
    { max_execution_time: '100' },
    { max_execution_time: '0' },
    { max_memory_usage: '100000000000' },
    { readonly: '0' },
    { database: 'system' },
    { database: 'customers_pillole' },
    { allow_ddl: '1' },
    { role: 'owner' },
  ])('may not set %o', async (search) => {
    const { status, text } = await ask(`SELECT count() FROM ${ATTEMPTS}`, { ...search });
    expect([status, text.includes('1\n')]).toEqual([403, false]);
  });
});

test.each([
  'SELECT count() FROM pills_once',
  'DESCRIBE TABLE pills',
  'EXPLAIN SELECT * FROM pills_once',
  'EXPLAIN SYNTAX SELECT * FROM pills_once',
  'SHOW CREATE TABLE bars',
  'EXISTS pills',
  'SELECT name FROM system.columns LIMIT 1',
  "SELECT 'file(1)'",
  'WITH x AS (SELECT offset FROM pills) SELECT max(offset) FROM x',
  "SELECT * FROM bars(symbols = ['7203.T'], step_s = 60, since = today(), until = now())",
])('an analyst may %s', async (sql) => {
  expect((await ask(sql)).status).toBe(200);
});

test.each(['SELEC 1', 'SELECT (', 'SELECT 1 FORM numbers(1)', 'DROP'])(
  'a typing error is a syntax error: %s',
  async (sql) => {
    const { status, text, headers } = await ask(sql);
    expect([status, headers.get('x-clickhouse-exception-code')]).toEqual([400, '62']);
    expect(text).toMatch(
      /^Code: 62\. DB::Exception: Syntax error: failed at position \d+.*\(SYNTAX_ERROR\)/,
    );
    expect(text).not.toContain('formatQuery');
  },
);

const PARAMETERIZED = READABLE.filter((name) => !/^pills/.test(name));
const commentOf = async (view: string) =>
  (await ask(`SELECT comment FROM system.tables WHERE name = '${view}' FORMAT TSVRaw`)).text.trim();

test.each(PARAMETERIZED)(
  'the comment of %s is a call with all its parameters, which runs',
  async (view) => {
    const call = /Call: (\w+\(.+\))$/.exec(await commentOf(view))![1]!;
    expect((await ask(`SELECT * FROM ${call}`)).status).toBe(200);
    const { text } = await ask(`SHOW CREATE VIEW ${view}`);
    const parameters = new Set(Array.from(text.matchAll(/\{(\w+):/g), ([, name]) => name!));
    const given = Array.from(call.matchAll(/(\w+) = /g), ([, name]) => name!);
    expect(given.sort()).toEqual([...parameters].sort());
  },
);

describe('a view without its parameters: the error shows a whole call', () => {
  test.each([
    ['SELECT * FROM @', 51],
    ['SELECT count() FROM @', 90],
    ['SELECT symbol FROM pillole.@', 47],
    ['SELECT v.symbol FROM @ AS v', 47],
    ['SELECT * FROM @()', 456],
  ])('%s', async (sql, code) => {
    for (const view of PARAMETERIZED) {
      const { text, headers } = await ask(sql.replace('@', view));
      expect(Number(headers.get('x-clickhouse-exception-code')), text).toBe(code);
      const [call] = /\w+\(.+\)$/.exec(await commentOf(view).then((of) => of.split('Call: ')[1]!))!;
      expect(text).toContain(` The view has parameters, all required: ${call}. (`);
    }
  });

  test('a parameter that is missing or malformed', async () => {
    const window = 'since = today(), until = now()';
    for (const call of [
      `bars(step_s = 60, ${window})`,
      `bars(symbols = ['A'], step_s = 'x', ${window})`,
    ]) {
      expect((await ask(`SELECT * FROM ${call}`)).text).toContain('all required: bars(symbols = [');
    }
  });

  test('other errors have no such sentence, nor do views that the analyst may not see', async () => {
    for (const sql of [
      "SELECT strat FROM bars(symbols = ['A'], step_s = 60, since = today(), until = now())",
      'SELECT bars FROM pills_once',
      'SELECT * FROM unlisted_call',
    ]) {
      const { status, text } = await ask(sql);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(text).not.toContain('has parameters');
    }
  });
});

test('an analyst has limits', async () => {
  expect((await ask('SELECT number FROM numbers(200000)')).text).toContain('TOO_MANY_ROWS');
  const memory = 'SELECT length(groupArray(toString(number))) FROM numbers(90000000)';
  expect((await ask(memory, { max_memory_usage: '50000000' })).text).toContain('MEMORY');
  expect((await ask(SLOW, { max_execution_time: '1' })).text).toContain('TIMEOUT_EXCEEDED');
});

const SLOW =
  'SELECT count() FROM numbers(1e6) AS x, numbers(1e6) AS y WHERE NOT ignore(x.number, y.number)';

test('a slow statement of an analyst does not delay an insert', async () => {
  let analystIsDone = false;
  const heavy = ask(SLOW, { max_execution_time: '5' }).finally(() => {
    analystIsDone = true;
  });
  await owner(`INSERT INTO unlisted VALUES ('x')`);
  expect(analystIsDone).toBe(false);
  await heavy;
});

test('the limits of a real server are those of the embedded one', () => {
  const file = 'deploy/sql/clickhouse/roles/analyst.sql';
  const sql = readFileSync(path.join(packageRoot, file), 'utf8');
  const lines = [...sql.matchAll(/^ +(max_\w+) = (\d+) MIN \S+ MAX (\d+)/gm)];
  expect(Object.fromEntries(lines.map(([, name, value]) => [name, Number(value)]))).toEqual(
    ANALYST_LIMITS,
  );
  for (const [, , value, max] of lines) expect(max).toBe(value);
});

test('every statement for a real server is understood by the engine', async () => {
  const file = 'deploy/sql/clickhouse/roles/analyst.sql';
  const sql = readFileSync(path.join(packageRoot, file), 'utf8').replaceAll(/^\s*--.*$/gm, '');
  for (const statement of sql.split(';')) {
    const quoted = statement.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
    expect((await owner(`SELECT formatQuery('${quoted}')`))[0]).toMatch(/^(CREATE|REVOKE|GRANT)/);
  }
});

test('the attempts that an older folder kept in the market move to the customers, once', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-clickhouse-'));
  const old = await startTestServer(folder);
  const count = async (table: string) =>
    (await post(old, `SELECT count(), any(body) FROM ${table}`)).text.trim();
  const migrate = () => migrateClickHouse({ clickhouseUrl: ownerUrl(old), namespace: '' });
  try {
    await post(old, 'CREATE DATABASE pillole');
    const sql = 'deploy/sql/clickhouse/customers/0001-webhook-attempts.sql';
    const table = readFileSync(path.join(packageRoot, sql), 'utf8');
    const insert = `INSERT INTO webhook_attempts (at, body) VALUES (now(), '${SECRET}')`;
    await post(old, table, { database: 'pillole' });
    await post(old, insert, { database: 'pillole' });
    await Promise.all([migrate(), migrate(), migrate()]);
    await migrate();
    expect(await count(ATTEMPTS)).toBe(`1\t${SECRET}`);
    expect(await count('pillole.webhook_attempts')).toContain('UNKNOWN_TABLE');
    // An earlier version runs again, and makes its table.
    await post(old, table, { database: 'pillole' });
    await post(old, insert, { database: 'pillole' });
    await migrate();
    expect(await count(ATTEMPTS)).toBe(`2\t${SECRET}`);
    expect(await count('pillole.webhook_attempts')).toContain('UNKNOWN_TABLE');
  } finally {
    await endTestServer(old);
    rmSync(folder, { recursive: true, force: true });
  }
});
