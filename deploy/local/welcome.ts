import type { StackFile } from '../../lib/stack-file.ts';
import type { Engines } from './engines.ts';
import type { Place } from './place.ts';

/**
 * What the launcher says when everything runs: the block with all addresses. `late` are processes
 * that are not ready yet.
 */
export function welcome(
  stack: StackFile,
  kinds: Engines['kinds'],
  place: Place,
  late: readonly string[],
  seconds: number,
): string {
  const rows: [string, string][] = [
    ['send pills', `POST ${stack.ingest}/api/pillole`],
    ['read', `${stack.api}/api/pills/latest`],
    ['stream', `${stack.stream}/api/stream`],
    ['Kafka', `${stack.kafka} (${kinds.kafka})`],
    ['registry', `${stack.registry} (${kinds.registry})`],
    ['ClickHouse', `${stack.clickhouse} (${kinds.clickhouse})`],
    ['PostgreSQL', `${stack.postgres} (${kinds.postgres})`],
    ['logs', place.logs],
    ['for programs', place.stack],
  ];
  const lines = rows.map(([label, value]) => `  ${label.padEnd(13)} ${value}`);
  const warning = late.length === 0 ? [] : [`  not ready yet: ${late.join(', ')}; see their logs`];
  return [
    '',
    `pillole runs (${seconds.toFixed(1)} s). Ctrl-C stops it.`,
    ...lines,
    ...warning,
    '',
  ].join('\n');
}
