import { readFileSync } from 'node:fs';
import path from 'node:path';
import { request } from 'undici';
import { beforeAll, expect, test } from 'vitest';
import { databaseName } from '../../lib/clickhouse.ts';
import { packageRoot } from '../../lib/root.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';

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

let namespace: Namespace;

beforeAll(async () => {
  namespace = await createNamespace();
});

/** What the plugin makes of its macros: times as Unix seconds. */
function putIn(sql: string): string {
  const now = Math.floor(Date.now() / 1_000);
  return sql
    .replaceAll('$__fromTime', `toDateTime(${now - 3_600})`)
    .replaceAll('$__toTime', `toDateTime(${now})`)
    .replaceAll('$__interval_s', '15')
    .replaceAll(/\$\{symbol\}/g, '7203.T');
}

test.each(statements)('%s', async (_title, sql) => {
  const statement = putIn(sql);
  expect(statement).not.toContain('$');
  const url = new URL(namespace.engines.clickhouseUrl);
  url.search = `?user=analyst&database=${databaseName(namespace.name)}`;
  const { statusCode, body } = await request(url, { method: 'POST', body: statement });
  expect([statusCode, await body.text()]).toEqual([200, expect.any(String)]);
});
