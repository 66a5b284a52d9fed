import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { BACKFILL_AGE_MAX_MS } from '../../../lib/kafka/topic-settings.ts';
import { FUTURE_MAX_MICROS } from '../../../schemas/pill.ts';

// The tables are sorted by timestamp, so a query by another time widens its range of timestamps. SQL
// has no constants: these tests compare the literals with the constants of the code.

const SQL = 'deploy/sql/clickhouse';
const read = (file: string) => readFileSync(path.join(packageRoot, file), 'utf8');
const filesOf = (folder: string, end: RegExp) =>
  readdirSync(path.join(packageRoot, folder))
    .filter((name) => end.test(name))
    .map((name) => `${folder}/${name}`);

/** The files that have the literal. */
function having(literal: RegExp, files: readonly string[]) {
  return files.flatMap((file) => {
    const found = [...read(file).matchAll(literal)].map(([, count]) => Number(count));
    return found.length === 0 ? [] : [[file, found] as const];
  });
}

describe('the minutes in a statement equal the time by which a timestamp may be ahead', () => {
  const analytics = filesOf('gateway/api/analytics', /(?<!\.test)\.ts$/);
  const statements = having(/\+ INTERVAL (\d+) MINUTE/g, [...filesOf(SQL, /\.sql$/), ...analytics]);

  test('there are such statements', () => {
    expect(statements.map(([file]) => file)).toContain(`${SQL}/0011-bars.sql`);
  });

  test.each(statements)('%s', (_file, minutes) => {
    for (const count of minutes) expect(count * 60_000_000).toBe(FUTURE_MAX_MICROS);
  });
});

test('the days in a view of live pills equal the largest backfill age', () => {
  const views = having(/- INTERVAL (\d+) DAY/g, filesOf(SQL, /\.sql$/));
  expect(views).toEqual([[`${SQL}/0017-intervals.sql`, [BACKFILL_AGE_MAX_MS / 86_400_000]]]);
});
