import { readFileSync } from 'node:fs';
import path from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseName } from '../../../lib/clickhouse.ts';
import { nowMicros } from '../../../lib/clock.ts';
import { packageRoot } from '../../../lib/root.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { makePython } from '../../../lib/testing/python.ts';
import { waitFor } from '../../../lib/testing/wait.ts';

const PAGE = readFileSync(path.join(packageRoot, 'deploy/sql/clickhouse/ANALYSTS.md'), 'utf8');
const QUESTIONS = [...PAGE.matchAll(/^(.+\?)\n\n```sql\n([\s\S]+?)```/gm)].map(
  ([, question, sql]) => [question!, sql!] as const,
);

/** A call of each view, to ask what columns it has. */
const CALLS = {
  pills_once: 'pills_once',
  bars: "bars(symbols = ['7203.T'], step_s = 60, since = today(), until = now())",
  span_bars: "span_bars(symbol = '7203.T', starts = ['2026-11-20'], ends = ['2026-11-21'])",
  summary: "summary(symbol = '7203.T', since = today(), until = now())",
  states: "states(symbol = '7203.T', max_hold_us = 1, since = today(), until = now())",
  movers: 'movers(min_count = 2, since = today(), until = now())',
  track_record:
    "track_record(symbol = '*', horizon_us = 1, age_max_us = 1, as_of = now(), since = today(), until = now())",
  intervals: "intervals(symbol = '7203.T', since = today(), until = now())",
} as const;

let namespace: Namespace;
let analytics: TestProcess;

beforeAll(async () => {
  // Pills of the last two hours are live, so that a track record has something to tell.
  namespace = await createNamespace({ backfill_age_ms: 86_400_000 });
  const writer = await openPillWriter(namespace);
  const now = nowMicros();
  const pills = ['7203.T', '6758.T'].flatMap((symbol) =>
    Array.from({ length: 600 }, (_, at) =>
      makePill({
        symbol,
        timestamp: now - (600 - at) * 5_000_000,
        gross_spread_percent: 0.1 + ((at * 37) % 101) / 1_000,
        confidence: (at % 100) / 100,
      }),
    ),
  );
  await writer.write(pills);
  await writer.close();
  analytics = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  await analytics.ready();
  await waitFor('the pills', async () => {
    const [row] = await ask<{ n: number }>('SELECT count() AS n FROM pills_once');
    return Number(row!.n) === pills.length;
  });
});

afterAll(async () => {
  await analytics?.stop();
});

/** Asks as the user analyst, as curl does. */
async function ask<T>(sql: string): Promise<T[]> {
  const url = new URL(namespace.engines.clickhouseUrl);
  url.search = new URLSearchParams({
    user: 'analyst',
    database: databaseName(namespace.name),
    default_format: 'JSONEachRow',
  }).toString();
  const { statusCode, body } = await request(url, { method: 'POST', body: sql });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(text);
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}

test('there are ten questions', () => {
  expect(QUESTIONS).toHaveLength(10);
});

test.each(QUESTIONS)('%s', async (_question, sql) => {
  expect((await ask(sql)).length).toBeGreaterThan(0);
});

describe('the columns of the page are those of the view, each with its meaning', () => {
  test.each(Object.entries(CALLS))('%s', async (view, call) => {
    const columns = await ask<{ name: string }>(`DESCRIBE (SELECT * FROM ${call})`);
    const section = PAGE.split('\n## ').find((text) => text.startsWith(`\`${view}`))!;
    const told = [...section.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)];
    expect(told.map(([, name]) => name)).toEqual(columns.map(({ name }) => name));
  });
});

test('an analyst changes nothing', async () => {
  for (const sql of [
    'DROP VIEW bars',
    'INSERT INTO pills (symbol) VALUES (1)',
    'ALTER TABLE pills DELETE WHERE 1',
  ]) {
    await expect(ask(sql)).rejects.toThrow(/ACCESS_DENIED|readonly|Only statements that read/i);
  }
});

const made = await makePython(
  path.join(packageRoot, 'deploy/sql/clickhouse/testing/requirements.txt'),
);

describe.skipIf('reason' in made && process.env.CI === undefined)('clickhouse-connect', () => {
  test('reads a view, as the page says', async () => {
    if ('reason' in made) throw new Error(made.reason);
    const { execFile } = await import('node:child_process');
    const { promisify } = await import('node:util');
    const { hostname, port } = new URL(namespace.engines.clickhouseUrl);
    const script = `
import clickhouse_connect
client = clickhouse_connect.get_client(host="${hostname}", port=${port}, username="analyst", database="${databaseName(namespace.name)}")
rows = client.query("SELECT symbol, count() FROM pills_once GROUP BY symbol ORDER BY symbol").result_rows
print(rows)
print(client.query("SELECT sum(count) FROM bars(symbols = {symbols:Array(String)}, step_s = 60, since = now() - INTERVAL 2 HOUR, until = now())", parameters={"symbols": ["7203.T"]}).first_row[0])
`;
    const { stdout } = await promisify(execFile)(made.python, ['-c', script], { timeout: 60_000 });
    expect(stdout.trim().split('\n')).toEqual(["[('6758.T', 600), ('7203.T', 600)]", '600']);
  });
});
