import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import { DASHBOARDS } from './dashboards.ts';
import { documentedMetrics, metricNamesIn } from './documented-metrics.ts';

const folder = path.join(packageRoot, 'deploy/dashboards');
const expressions = [...DASHBOARDS.values()].flatMap(({ panels = [] }) =>
  panels.flatMap((panel) =>
    'targets' in panel ? (panel.targets ?? []).map(({ expr }) => String(expr)) : [],
  ),
);

test('the files are made from the source, which the types of Grafana check', () => {
  for (const [name, dashboard] of DASHBOARDS) {
    const file = path.join(folder, name);
    if (process.env.DASHBOARDS_WRITE === '1') {
      writeFileSync(file, `${JSON.stringify(dashboard, undefined, 2)}\n`);
    }
    expect(JSON.parse(readFileSync(file, 'utf8')), name).toEqual(dashboard);
  }
  const others = readdirSync(folder).filter(
    (name) => name.endsWith('.json') && !DASHBOARDS.has(name),
  );
  expect(others).toEqual(['signals.json']);
});

test('Prometheus understands each query, and docs/metrics.md lists each metric', () => {
  const known = documentedMetrics();
  const rules = expressions.map((expr, at) => {
    const concrete = expr.replaceAll('$__rate_interval', '1m');
    return `      - record: q${at}\n        expr: ${JSON.stringify(concrete)}`;
  });
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'pillole-dashboards-'));
  const file = path.join(temporary, 'queries.yml');
  writeFileSync(file, `groups:\n  - name: dashboards\n    rules:\n${rules.join('\n')}\n`);
  const promtool = process.env.PROMTOOL_PATH ?? 'promtool';
  const run = spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' });
  rmSync(temporary, { recursive: true });
  expect(run.error, 'apt-get install prometheus, or PROMTOOL_PATH').toBeUndefined();
  expect(run.stdout + run.stderr).toContain(`SUCCESS: ${expressions.length} rules found`);
  const unknown = expressions
    .flatMap(metricNamesIn)
    .filter((name) => !known.has(name) && !name.startsWith('pillole:'));
  expect(unknown).toEqual([]);
});

test('every documented metric of ours is on a dashboard or in a rule, except those of the demo', () => {
  const alerts = path.join(packageRoot, 'deploy/alerts');
  const rules = readdirSync(alerts)
    .filter((name) => name.endsWith('.yml'))
    .map((name) => readFileSync(path.join(alerts, name), 'utf8'));
  const used = new Set([...expressions, ...rules].flatMap(metricNamesIn));
  const unseen = [...documentedMetrics()].filter(
    (name) => name.startsWith('pillole_') && !name.startsWith('pillole_demo_') && !used.has(name),
  );
  expect(unseen).toEqual(['pillole_ingest_bodies_bytes', 'pillole_ingest_identities']);
});
