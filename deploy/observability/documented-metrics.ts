import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';

/** Names of metrics that docs/metrics.md lists, those of others included. */
export function documentedMetrics(): ReadonlySet<string> {
  const page = readFileSync(path.join(packageRoot, 'docs/metrics.md'), 'utf8');
  return new Set([...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!));
}

/** Prefixes by which the metrics of an expression are told from its labels and functions. */
const METRIC = /\b(?:pillole[_:]|node_|nodejs_|process_)[\w:]+|\bup\b/g;
const SERIES = /_(?:bucket|count|sum)$/;

/** Metrics that a PromQL expression names; series of histograms by the name of their metric. */
export function metricNamesIn(expr: string): readonly string[] {
  const withoutText = expr.replaceAll(/"[^"]*"/g, '""');
  return [...withoutText.matchAll(METRIC)].map(([name]) => name.replace(SERIES, ''));
}
