import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { testPepperFile } from '../../../testing/engine-addresses.ts';
import { makePython } from '../../../testing/python.ts';
import { ANALYST_LIMITS } from '../../local/clickhouse-server/limits.ts';
import { stackLayout } from '../../local/stack-layout.ts';
import { type Analyst, nullColumns, openAnalyst, type Row } from './testing/analyst.ts';

const PAGE = readFileSync(path.join(packageRoot, 'deploy/sql/clickhouse/ANALYSTS.md'), 'utf8');
const QUESTIONS = [...PAGE.matchAll(/^(.+\?)\n\n```sql\n([\s\S]+?)```/gm)].map(
  ([, question, sql]) => [question!, sql!] as const,
);

/** A call of each view, to list its columns. */
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

type Figures = Readonly<Record<string, number>>;

/** What a reader who knows the demo market expects: 2 symbols, 50 minutes, spreads below 1 %. */
const PLAUSIBLE: Readonly<Record<string, (rows: readonly Figures[]) => boolean>> = {
  'How many pills': (rows) =>
    rows.reduce((sum, { pills }) => sum + pills!, 0) === analyst.pills.length &&
    rows.every(({ late, backfill }) => late === 0 && backfill === 0),
  'What were the one-minute bars': (rows) =>
    rows.length > 40 &&
    rows.every(({ low, p50, high }) => 0 < low! && low! <= p50! && p50! <= high! && high! < 1),
  'How wide was the spread': (rows) =>
    rows.every(({ mean_spread: mean }) => 0 < mean! && mean! < 1),
  'Which symbols moved': (rows) =>
    rows.length === 2 &&
    rows.every(({ now, then, change }) => Math.abs(change! - (now! - then!)) < 1e-9),
  'How long was a symbol': (rows) =>
    rows.every(({ seconds }) => seconds! >= 0 && seconds! <= 86_400) &&
    rows.some(({ pills, seconds }) => pills! > 100 && seconds! > 60),
  'Is a higher confidence': (rows) => {
    const [first, last] = [rows.find(isSample)!, rows.findLast(isSample)!];
    return (
      rows.every(({ confidence_from: from }) => from! % 10 === 0 && from! <= 100) &&
      first.confidence_from! < 50 &&
      last.confidence_from! > 50 &&
      last.narrowed! > first.narrowed!
    );
  },
  // The pills are written at once, so the times of receipt are close together.
  'How regularly': (rows) => rows.every(({ seconds }) => seconds! >= 0 && seconds! < 3_600),
  'Which pills were far': (rows) =>
    rows.length === 10 && rows.every(({ spread, median }) => spread !== median),
  'Do two symbols': ([row]) => Math.abs(row!.r!) <= 1 && row!.n! > 40,
  'What did each generator': (rows) =>
    rows.every(({ mean_confidence: mean }) => 20 < mean! && mean! < 80),
};

const isSample = ({ n }: Figures) => n! >= 30;

function isPlausible(question: string, rows: readonly Row[]): boolean {
  const [, check] = Object.entries(PLAUSIBLE).find(([begin]) => question.startsWith(begin))!;
  const figures = rows.map((row) => {
    return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)]));
  });
  return check(figures);
}

const pillsOf = (wanted: string) => analyst.pills.filter(({ symbol }) => symbol === wanted).length;

let analyst: Analyst;

beforeAll(async () => {
  analyst = await openAnalyst();
});

afterAll(() => analyst?.close());

test('there are ten questions', () => {
  expect(QUESTIONS).toHaveLength(10);
});

test.each(QUESTIONS)('%s', async (question, sql) => {
  const rows = await analyst.ask(sql);
  // Without pills, the state would be `unobserved` all the time.
  const observed = rows.filter(({ market_state }) => market_state !== 'unobserved');
  expect(observed.length).toBeGreaterThan(0);
  expect(nullColumns(observed)).toEqual([]);
  expect(isPlausible(question, rows), JSON.stringify(rows)).toBe(true);
});

describe('the page documents exactly the columns of the view', () => {
  test.each(Object.entries(CALLS))('%s', async (view, call) => {
    const columns = await analyst.ask(`DESCRIBE (SELECT * FROM ${call})`);
    const section = PAGE.split('\n## ').find((text) => text.startsWith(`\`${view}`))!;
    const documented = [...section.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)];
    expect(documented.map(([, name]) => name)).toEqual(columns.map(({ name }) => name));
  });
});

test('an analyst cannot change anything', async () => {
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

test('the page states the limits with their figures', () => {
  const rows = [...PAGE.matchAll(/^\|.+\| `(max_\w+)` \| ([\d,]+)(?: s| bytes)? \|/gm)];
  const figures = rows.map(([, name, figure]) => [name, Number(figure!.replaceAll(',', ''))]);
  expect(Object.fromEntries(figures)).toEqual(ANALYST_LIMITS);
});

test('the recipe for a whole day exports each pill of the day once, also where pages meet', async () => {
  const day = formatTimestamp(analyst.pills.at(-1)!.timestamp).slice(0, 10);
  const script = snippet('sh', 'Export a whole day')
    .replace(/^DAY=.*$/m, `DAY=${day}`)
    .replace('PAGE=50000 ROWS=50000', 'PAGE=300 ROWS=300');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-export-'));
  try {
    await run('sh', ['-c', script], folder);
    const lines = readFileSync(path.join(folder, 'day.tsv'), 'utf8').trimEnd().split('\n');
    const exported = lines.map((line) => line.split('\t')[2]);
    const ofDay = analyst.pills.filter((pill) => formatTimestamp(pill.timestamp).startsWith(day));
    expect(exported.sort()).toEqual(ofDay.map(({ id }) => id).sort());
    expect(exported.length).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('the examples of the page, with the test address and database', () => {
  test('curl', async () => {
    const { stdout } = await run('sh', ['-c', snippet('sh')]);
    expect(stdout).toMatch(new RegExp(`count\\(\\)[\\s\\S]+ ${analyst.pills.length} `));
  });

  test('@clickhouse/client', async () => {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', snippet('js')]);
    expect(stdout).toMatch(new RegExp(`'count\\(\\)': '?${analyst.pills.length}`));
  });

  test.skipIf(hasNoPython)('clickhouse-connect', async () => {
    expect(await runPython(snippet('python'))).toEqual([
      `[('6758.T', ${pillsOf('6758.T')}), ('7203.T', ${pillsOf('7203.T')})]`,
    ]);
  });
});

test.skipIf(hasNoPython)('clickhouse-connect passes parameters to a view', async () => {
  const connected = snippet('python').split('\n').slice(0, 3).join('\n');
  const script = `${connected}
print(client.query("SELECT sum(count) FROM bars(symbols = {symbols:Array(String)}, step_s = 60, since = now() - INTERVAL 2 HOUR, until = now())", parameters={"symbols": ["7203.T"]}).first_row[0])
`;
  expect(await runPython(script)).toEqual([String(pillsOf('7203.T'))]);
});

/** The page's example in one language: the first, or the first of a section. */
function snippet(language: 'sh' | 'python' | 'js', section = ''): string {
  const from = PAGE.slice(section === '' ? 0 : PAGE.indexOf(`\n## ${section}\n`));
  const [, text] = from.match(new RegExp(`^\`\`\`${language}\\n([\\s\\S]+?)\`\`\``, 'm'))!;
  const { hostname, port } = new URL(analyst.namespace.engines.clickhouseUrl);
  return text!
    .replaceAll('127.0.0.1', hostname)
    .replaceAll('8123', port)
    .replaceAll('.local/analyst.netrc', netrcFile())
    .replaceAll(/(database\W+)pillole/g, `$1${analyst.database}`);
}

/** The file that the launcher writes for the user analyst. */
function netrcFile(): string {
  return stackLayout(path.dirname(testPepperFile())).analystNetrc;
}

function run(program: string, args: readonly string[], cwd = packageRoot) {
  return promisify(execFile)(program, args, { cwd, timeout: 60_000 });
}

/** @returns the output lines of a script */
async function runPython(script: string): Promise<string[]> {
  if ('reason' in made) throw new Error(made.reason);
  const { stdout } = await run(made.python, ['-c', script]);
  return stdout.trim().split('\n');
}
