import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/root.ts';
import { BACKFILL_AGE_MAX_MS } from '../../../lib/settings.ts';
import { FUTURE_MAX_MICROS } from '../../../schemas/pill.ts';

// SQL has no constants: the key is of timestamps, and what is asked by another time widens it.

const SQL = 'deploy/sql/clickhouse';
const read = (file: string) => readFileSync(path.join(packageRoot, file), 'utf8');
const filesOf = (folder: string, end: RegExp) =>
  readdirSync(path.join(packageRoot, folder))
    .filter((name) => end.test(name))
    .map((name) => `${folder}/${name}`);

/** Those that have the literal. */
function having(literal: RegExp, files: readonly string[]) {
  return files.flatMap((file) => {
    const found = [...read(file).matchAll(literal)].map(([, count]) => Number(count));
    return found.length === 0 ? [] : [[file, found] as const];
  });
}

describe('minutes in a statement are how far a timestamp may be ahead of its receipt', () => {
  const analytics = filesOf('gateway/api/analytics', /(?<!\.test)\.ts$/);
  const statements = having(/\+ INTERVAL (\d+) MINUTE/g, [...filesOf(SQL, /\.sql$/), ...analytics]);

  test('there are such statements', () => {
    expect(statements.map(([file]) => file)).toContain(`${SQL}/0011-bars.sql`);
  });

  test.each(statements)('%s', (_file, minutes) => {
    for (const count of minutes) expect(count * 60_000_000).toBe(FUTURE_MAX_MICROS);
  });
});

test('days in a view of live pills are the largest backfill age', () => {
  const views = having(/- INTERVAL (\d+) DAY/g, filesOf(SQL, /\.sql$/));
  expect(views).toEqual([[`${SQL}/0017-intervals.sql`, [BACKFILL_AGE_MAX_MS / 86_400_000]]]);
});
