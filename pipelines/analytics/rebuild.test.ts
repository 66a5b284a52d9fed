import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type ClickHouse,
  databaseName,
  openClickHouse,
} from '../../lib/clickhouse/clickhouse-client.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

let namespace: Namespace;
let writer: PillWriter;
let sink: TestProcess;
let clickhouse: ClickHouse;

beforeEach(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  clickhouse = openClickHouse({
    url: namespace.engines.clickhouseUrl,
    database: databaseName(namespace.name),
  });
  sink = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  await sink.ready();
});

afterEach(async () => {
  await sink.stop();
  await writer.close();
  await clickhouse.close();
});

async function select<T>(query: string): Promise<T[]> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' });
  return result.json<T>();
}

async function ids(): Promise<string[]> {
  const rows = await select<{ id: string }>('SELECT id FROM pills_once ORDER BY id');
  return rows.map(({ id }) => id);
}

async function write(from: number, count: number): Promise<string[]> {
  const pills = Array.from({ length: count }, (_, at) =>
    makePill({ id: `p-${String(from + at).padStart(6, '0')}`, symbol: `S${at % 7}.T` }),
  );
  // A produce has its time-out: on a loaded machine 5,000 at once may miss it.
  for (let at = 0; at < count; at += 500) await writer.write(pills.slice(at, at + 500));
  return pills.map(({ id }) => id);
}

const startRebuild = (settleMs: number, ...args: string[]) =>
  startProcess('pipelines/analytics/rebuild-main.js', args, {
    ...namespace.env,
    REBUILD_SETTLE_MS: String(settleMs),
  });

test('a damaged table is complete again, while pills keep arriving and readers always see rows', async () => {
  const written = await write(0, 5_000);
  await waitFor('the rows', async () => (await ids()).length === written.length);
  // The table was changed by hand, which the rebuild cannot detect.
  await clickhouse.command({
    query: `ALTER TABLE pills UPDATE confidence = 0 WHERE symbol = 'S1.T' SETTINGS mutations_sync = 1`,
  });
  await clickhouse.command({
    query: `ALTER TABLE pills DELETE WHERE id = 'p-000100' SETTINGS mutations_sync = 1`,
  });
  const damaged = await ids();
  expect(damaged).toHaveLength(written.length - 1);

  const rebuilding = await startRebuild(2_000);
  let done = false;
  const ended = rebuilding.exited.then((code) => {
    done = true;
    return code;
  });
  let before = damaged.length;
  let next = 5_000;
  while (!done) {
    written.push(...(await write(next, 50)));
    next += 50;
    // Readers never see an empty or partial table: existing rows stay.
    const now = (await ids()).length;
    expect(now).toBeGreaterThanOrEqual(before);
    before = now;
  }
  expect(await ended).toBe(0);
  const lines = rebuilding.output().trim().split('\n');
  const isProgress = (line: string) => /^\d+ %: \d+ of \d+ records/.test(line);
  expect(lines.slice(0, -2).every(isProgress)).toBe(true);
  expect(lines.slice(-2)).toEqual([
    'Readers have the new table; its last rows settle for 2 s.',
    expect.stringMatching(/^Rebuilt: /),
  ]);
  await waitFor('all rows to be stored', async () => (await ids()).length === written.length);
  expect(await ids()).toEqual(written.sort());
  const [row] = await select<{ n: string }>('SELECT count() AS n FROM pills WHERE confidence = 0');
  expect(Number(row!.n)).toBe(0);
  const tables = await select<{ name: string }>('SHOW TABLES');
  expect(tables.filter(({ name }) => name.includes('next'))).toEqual([]);
});

test('rows that are no longer in the log are kept; a killed rebuild leaves the old table', async () => {
  const written = await write(0, 300);
  await waitFor('the rows', async () => (await ids()).length === written.length);
  // A row of an epoch whose log is gone.
  await clickhouse.command({
    query: `INSERT INTO pills (* EXCEPT rank)
            SELECT * EXCEPT (rank) REPLACE ('before' AS epoch, 'OLD.T' AS symbol) FROM pills WHERE id = 'p-000001'`,
  });
  const broken = await startRebuild(60_000);
  await waitFor('the rebuild to be under way', async () =>
    (await select<{ name: string }>('SHOW TABLES')).some(({ name }) => name === 'pills_next'),
  );
  process.kill(broken.pid, 'SIGKILL');
  await broken.exited;
  expect(await ids()).toHaveLength(written.length + 1);

  const refused = await startRebuild(1_000);
  expect([await refused.exited, refused.output()]).toEqual([
    1,
    expect.stringContaining('Another rebuild is under way, or was killed.'),
  ]);
  const again = await startRebuild(1_000, '--anew');
  expect([await again.exited, again.output()]).toEqual([0, expect.stringContaining('Rebuilt')]);
  expect(await ids()).toHaveLength(written.length + 1);
  const [old] = await select<{ n: string }>(
    `SELECT count() AS n FROM pills WHERE epoch = 'before'`,
  );
  expect(Number(old!.n)).toBe(1);
});
