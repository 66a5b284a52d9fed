import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { type Analyst, nullColumns, openAnalyst } from '../sql/clickhouse/testing/analyst.ts';

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly rawSql: string }[];
  }[];
  readonly templating: {
    readonly list: readonly { readonly query: string; readonly type: string }[];
  };
}

const file = path.join(packageRoot, 'deploy/dashboards/signals.json');
const dashboard = JSON.parse(readFileSync(file, 'utf8')) as Dashboard;
const statements = [
  ...dashboard.templating.list
    .filter(({ type }) => type === 'query')
    .map(({ query }) => ['the list of symbols', query] as const),
  ...dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ rawSql }) => [title, rawSql] as const),
  ),
];

let analyst: Analyst;

beforeAll(async () => {
  analyst = await openAnalyst();
});

afterAll(() => analyst?.close());

/** Replaces the macros like the plugin: times as Unix seconds. */
function expandMacros(sql: string): string {
  const now = Math.floor(Date.now() / 1_000);
  return sql
    .replaceAll('$__fromTime', `toDateTime(${now - 3_600})`)
    .replaceAll('$__toTime', `toDateTime(${now})`)
    .replaceAll('$__interval_s', '15')
    .replaceAll(/\$\{symbol\}/g, '7203.T');
}

test.each(statements)('%s', async (_title, sql) => {
  const statement = expandMacros(sql);
  expect(statement).not.toContain('$');
  const rows = await analyst.ask(statement);
  // Without pills, the state would be `unobserved` all the time.
  const observed = rows.filter(({ market_state }) => market_state !== 'unobserved');
  expect(observed.length).toBeGreaterThan(0);
  expect(nullColumns(observed)).toEqual([]);
});
