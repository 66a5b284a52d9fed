import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/root.ts';
import { makePython } from '../../../lib/testing/python.ts';
import { type Analyst, nullColumns, openAnalyst, PILLS_OF_SYMBOL } from './testing/analyst.ts';

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

let analyst: Analyst;

beforeAll(async () => {
  analyst = await openAnalyst();
});

afterAll(() => analyst?.close());

test('there are ten questions', () => {
  expect(QUESTIONS).toHaveLength(10);
});

test.each(QUESTIONS)('%s', async (_question, sql) => {
  const rows = await analyst.ask(sql);
  // Of no pills it is `unobserved` all the time.
  const told = rows.filter(({ market_state }) => market_state !== 'unobserved');
  expect(told.length).toBeGreaterThan(0);
  expect(nullColumns(told)).toEqual([]);
});

describe('the columns of the page are those of the view, each with its meaning', () => {
  test.each(Object.entries(CALLS))('%s', async (view, call) => {
    const columns = await analyst.ask(`DESCRIBE (SELECT * FROM ${call})`);
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
    await expect(analyst.ask(sql)).rejects.toThrow(
      /ACCESS_DENIED|readonly|Only statements that read/i,
    );
  }
});

const made = await makePython(
  path.join(packageRoot, 'deploy/sql/clickhouse/testing/requirements.txt'),
);
const hasNoPython = 'reason' in made && process.env.CI === undefined;

describe('what the page says to run, with the address and the database put in', () => {
  test('curl', async () => {
    const { stdout } = await run('sh', ['-c', snippet('sh')]);
    expect(stdout).toMatch(new RegExp(`count\\(\\)[\\s\\S]+ ${PILLS_OF_SYMBOL * 2} `));
  });

  test('@clickhouse/client', async () => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', snippet('js')]);
    expect(stdout).toMatch(new RegExp(`'count\\(\\)': '?${PILLS_OF_SYMBOL * 2}`));
  });

  test.skipIf(hasNoPython)('clickhouse-connect', async () => {
    expect(await runPython(snippet('python'))).toEqual([
      `[('6758.T', ${PILLS_OF_SYMBOL}), ('7203.T', ${PILLS_OF_SYMBOL})]`,
    ]);
  });
});

test.skipIf(hasNoPython)('clickhouse-connect gives a view its parameters', async () => {
  const connected = snippet('python').split('\n').slice(0, 2).join('\n');
  const script = `${connected}
print(client.query("SELECT sum(count) FROM bars(symbols = {symbols:Array(String)}, step_s = 60, since = now() - INTERVAL 2 HOUR, until = now())", parameters={"symbols": ["7203.T"]}).first_row[0])
`;
  expect(await runPython(script)).toEqual([String(PILLS_OF_SYMBOL)]);
});

/** A piece of the page in one language. */
function snippet(language: 'sh' | 'python' | 'js'): string {
  const [, text] = PAGE.match(new RegExp(`^\`\`\`${language}\\n([\\s\\S]+?)\`\`\``, 'm'))!;
  const { hostname, port } = new URL(analyst.namespace.engines.clickhouseUrl);
  return text!
    .replaceAll('127.0.0.1', hostname)
    .replaceAll('8123', port)
    .replaceAll(/(database\W+)pillole/g, `$1${analyst.database}`);
}

function run(program: string, args: readonly string[]) {
  return promisify(execFile)(program, args, { cwd: packageRoot, timeout: 60_000 });
}

/** @returns the lines that a script prints */
async function runPython(script: string): Promise<string[]> {
  if ('reason' in made) throw new Error(made.reason);
  const { stdout } = await run(made.python, ['-c', script]);
  return stdout.trim().split('\n');
}
