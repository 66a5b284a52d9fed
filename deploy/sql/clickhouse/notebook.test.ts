import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { placedListings } from '../../../generator/demo/listings.ts';
import { createMarket } from '../../../generator/demo/market.ts';
import { withoutCredentials } from '../../../lib/config/without-credentials.ts';
import { packageRoot } from '../../../lib/files/package-root.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import { makePill } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { makePython } from '../../../testing/python.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type Analyst, openAnalyst } from './testing/analyst.ts';

const run = promisify(execFile);
const NOTEBOOK = path.join(packageRoot, 'docs/notebook/day.ipynb');
const CLIENT = path.join(packageRoot, 'sdk/python');
const SYMBOLS = ['7203.T', '6758.T', '8306.T', '9984.T'];
const HOUR_US = 3_600e6;
const TOKYO_US = 9 * HOUR_US;
/** Sessions of Tokyo, in hours of the day; other hours are closed. */
const SESSIONS = [
  ['pre-open', 8, 9],
  ['open', 9, 11.5],
  ['lunch', 11.5, 12.5],
  ['open', 12.5, 15.5],
] as const;
const MARKET = { seed: 11, pillsPerS: 1, from: 8, hours: 8 };

interface Cell {
  readonly cell_type: string;
  readonly source: readonly string[];
  readonly outputs?: readonly unknown[];
  readonly execution_count?: number | null;
}

let analyst: Analyst;
let db: Database;
let folder: string;
let day: string;
const processes: TestProcess[] = [];

beforeAll(async () => {
  // Yesterday in Tokyo: the day is over, and its pills are live (the oldest age is seven days).
  const midnight = Math.floor((nowMicros() + TOKYO_US) / (24 * HOUR_US)) * 24 * HOUR_US - TOKYO_US;
  const began = midnight - 24 * HOUR_US;
  day = new Date((began + TOKYO_US) / 1_000).toISOString().slice(0, 10);
  analyst = await openAnalyst(pillsOfDay(began));
  const { namespace } = analyst;
  db = openTestDatabase(namespace);
  const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
  const [api, stream] = [String(await getPort()), String(await getPort())];
  const env = { ...namespace.env, API_PORT: api, STREAM_PORT: stream };
  for (const [program, args] of [
    ['pipelines/main.js', ['latest']],
    ['gateway/api/main.js', []],
    ['gateway/stream/main.js', []],
  ] as const) {
    const started = await startProcess(program, args, env);
    processes.push(started);
    await started.ready();
  }
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-notebook-'));
  await writeStackFolder(key, `http://127.0.0.1:${api}`, `ws://127.0.0.1:${stream}`);
  await waitFor('the newest pill of each symbol', async () => {
    const url = `http://127.0.0.1:${api}/api/pills/latest?symbols=${SYMBOLS}`;
    const answer = await fetch(url, { headers: { 'x-api-key': key } });
    const text = await answer.text();
    return answer.status === 200 && Object.keys(JSON.parse(text).data).length === 4 ? true : text;
  });
});

afterAll(async () => {
  await Promise.all(processes.map((process) => process.stop()));
  await db?.destroy();
  await analyst?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** The files that `npm start` writes into its folder. */
async function writeStackFolder(key: string, api: string, stream: string): Promise<void> {
  const clickhouse = withoutCredentials(analyst.namespace.engines.clickhouseUrl);
  const host = new URL(clickhouse).hostname;
  const login = `machine ${host} login analyst password ${inject('passwords').clickhouse_analyst}\n`;
  await writeFile(path.join(folder, 'stack.json'), JSON.stringify({ api, stream, clickhouse }));
  await writeFile(path.join(folder, 'demo-keys.json'), JSON.stringify({ pro: key }));
  await writeFile(path.join(folder, 'analyst.netrc'), login);
}

/** A demo market in Tokyo's sessions, in which all spreads follow the hour a little. */
function pillsOfDay(midnight: number): PillRecord[] {
  const { seed, pillsPerS, from, hours } = MARKET;
  const listings = placedListings(() => 'ALWAYS').filter(({ symbol }) => SYMBOLS.includes(symbol));
  const market = createMarket(seed, pillsPerS, listings);
  const pills: PillRecord[] = [];
  for (let next = market.next(); next.atS < hours * 3_600; next = market.next()) {
    const { atS, gross_spread_percent, ...signal } = next;
    const hour = from + atS / 3_600;
    const session = SESSIONS.find(([, begins, ends]) => begins <= hour && hour < ends);
    const together = 1 + 0.4 * Math.sin(atS / 40);
    pills.push(
      makePill({
        ...signal,
        gross_spread_percent: Number((gross_spread_percent * together).toFixed(6)),
        market_state: session?.[0] ?? 'closed',
        timestamp: Math.round(midnight + (from * 3_600 + atS) * 1e6),
      }),
    );
  }
  return pills;
}

test('the notebook goes from nothing to its plots, with the client, ClickHouse and DuckDB', async () => {
  const made = await makePython(path.join(CLIENT, 'requirements.txt'));
  if ('reason' in made) throw new Error(`No Python with the notebook's packages: ${made.reason}`);
  const plots = path.join(folder, 'plots');
  await mkdir(plots);
  const args = [path.join(CLIENT, 'tests/run_notebook.py'), NOTEBOOK, plots];
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    PYTHONPATH: path.join(CLIENT, 'src'),
    PILLOLE_STACK: folder,
    PILLOLE_DAY: day,
    PILLOLE_DATABASE: analyst.database,
  };
  const { stdout } = await run(made.python, args, { cwd: folder, env, timeout: 280_000 }).catch(
    ({ stderr, stdout: said }) => {
      throw new Error(`${stderr}\n${said}`);
    },
  );
  expect(await readdir(plots)).toHaveLength(4);
  const total = analyst.pills.length.toLocaleString('en-US');
  expect(stdout).toContain(`${day} 00:00 JST to `);
  // The same pills in the export, whose receipt was verified, and in DuckDB.
  expect(stdout).toMatch(new RegExp(`^${total} pills up to .+, digest [0-9a-f]{64}$`, 'm'));
  expect(stdout).toMatch(new RegExp(`^${total} pills in exp_\\w+\\.parquet; `, 'm'));
  expect(stdout).toMatch(new RegExp(`'all': ${analyst.pills.length}\\b`));
  // Hours of Tokyo: with those of UTC the first would be 23.
  expect(stdout).toMatch(/^hour +\n8 /m);
  const shots = process.env.NOTEBOOK_SHOTS;
  if (shots !== undefined) await cp(plots, shots, { recursive: true });
});

test('the committed notebook holds no outputs, and no trace of a machine', async () => {
  const text = await readFile(NOTEBOOK, 'utf8');
  const book = JSON.parse(text) as { readonly cells: readonly Cell[]; readonly metadata: object };
  const code = book.cells.filter(({ cell_type: type }) => type === 'code');
  expect(code.length).toBeGreaterThan(5);
  for (const cell of code) {
    expect(cell.outputs, cell.source.join('')).toEqual([]);
    expect(cell.execution_count).toBeNull();
  }
  expect(book.metadata).toEqual({
    kernelspec: { display_name: 'Python 3', language: 'python', name: 'python3' },
    language_info: { name: 'python' },
  });
  expect(text).not.toMatch(/\/(?:home|root|tmp|Users)\//);
});
