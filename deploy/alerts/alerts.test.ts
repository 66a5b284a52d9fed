import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../lib/files/package-root.ts';
import { documentedMetrics, metricNamesIn } from '../observability/documented-metrics.ts';

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}
interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const folder = path.join(packageRoot, 'deploy/alerts');
const files = readdirSync(folder).filter((name) => name.endsWith('.yml'));
const unitTests = readdirSync(path.join(folder, 'tests'));
const rules = files.flatMap((name) => {
  const { groups } = parse(readFileSync(path.join(folder, name), 'utf8')) as RuleFile;
  return groups.flatMap((group) => group.rules);
});
const alerts = rules.filter((rule) => rule.alert !== undefined);

/** Runs promtool. @returns its output; the test fails unless it succeeds */
function promtool(args: readonly string[]): string {
  const run = spawnSync(process.env.PROMTOOL_PATH ?? 'promtool', args, {
    cwd: folder,
    encoding: 'utf8',
  });
  if (run.error !== undefined) {
    throw new Error(
      'promtool is missing: apt-get install prometheus, or name it in PROMTOOL_PATH.',
      { cause: run.error },
    );
  }
  expect(run.status, run.stdout + run.stderr).toBe(0);
  return run.stdout;
}

describe('the rules', () => {
  test('promtool accepts them', () => {
    expect(promtool(['check', 'rules', ...files])).toContain('SUCCESS');
  });

  test('promtool confirms when each fires, and when it does not', () => {
    const out = promtool(['test', 'rules', ...unitTests.map((name) => `tests/${name}`)]);
    expect(out.match(/SUCCESS/g)).toHaveLength(unitTests.length);
  });

  test('name only metrics that docs/metrics.md lists, or that a rule records', () => {
    const known = documentedMetrics();
    const recorded = new Set(rules.flatMap(({ record }) => record ?? []));
    const used = rules.flatMap(({ expr }) => metricNamesIn(expr));
    expect(used.length).toBeGreaterThan(rules.length);
    expect(used.filter((name) => !known.has(name) && !recorded.has(name))).toEqual([]);
  });

  test('every alert has a severity, a summary, and a section of its own in the runbook', () => {
    const page = readFileSync(path.join(packageRoot, 'deploy/runbooks/alerts.md'), 'utf8');
    const sections = new Map(
      page
        .split(/^## /m)
        .slice(1)
        .map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
    );
    for (const { alert, labels, annotations } of alerts) {
      expect(['page', 'ticket'], alert).toContain(labels?.severity);
      expect(annotations?.summary, alert).toMatch(/\.$/);
      expect(annotations?.runbook_url).toBe(`deploy/runbooks/alerts.md#${alert!.toLowerCase()}`);
      const section = sections.get(alert!);
      for (const part of ['**Meaning**', '**Look at**', '**Do**']) {
        expect(section, `${alert} ${part}`).toContain(part);
      }
    }
    const names = new Set(alerts.map(({ alert }) => alert!));
    expect([...sections.keys()].filter((name) => !names.has(name))).toEqual([]);
    expect(names.size).toBe(alerts.length);
  });
});
