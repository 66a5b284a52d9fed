import type { Tier } from '../../lib/access/tiers.ts';
import type { StackFile } from '../../lib/stack-file.ts';
import type { Engines } from './engines.ts';
import type { Place } from './place.ts';

export interface Welcome {
  readonly stack: StackFile;
  readonly kinds: Engines['kinds'];
  readonly place: Place;
  /** Processes that are not ready yet. */
  readonly late: readonly string[];
  readonly seconds: number;
  /** Keys that were just made; they are shown this once. */
  readonly demoKeys: Readonly<Record<Tier, string>> | undefined;
  readonly hasDemoAccounts: boolean;
}

/** What the launcher says when everything runs: the block with all addresses. */
export function welcome(told: Welcome): string {
  const { stack, kinds, place, late, seconds, demoKeys, hasDemoAccounts } = told;
  const rows: [string, string][] = [
    ['page', `${stack.api}/`],
    ['send pills', `POST ${stack.ingest}/api/pillole`],
    ['read', `${stack.api}/api/pills/latest`],
    ['stream', `${stack.stream}/api/stream`],
    ['Kafka', `${stack.kafka} (${kinds.kafka})`],
    ['registry', `${stack.registry} (${kinds.registry})`],
    ['ClickHouse', `${stack.clickhouse} (${kinds.clickhouse})`],
    ['PostgreSQL', `${stack.postgres} (${kinds.postgres})`],
    ['reference', `${stack.api}/docs`],
    ['mail', place.outbox],
    ['demo keys', hasDemoAccounts ? place.demoKeys : 'none (DEMO_ACCOUNTS=yes makes them)'],
    ['logs', place.logs],
    ['for programs', place.stack],
  ];
  const lines = rows.map(([label, value]) => `  ${label.padEnd(13)} ${value}`);
  const warning = late.length === 0 ? [] : [`  not ready yet: ${late.join(', ')}; see their logs`];
  const keys = Object.entries(demoKeys ?? {}).map(
    ([tier, key]) => `  demo key      ${tier.padEnd(13)} ${key}`,
  );
  return [
    '',
    `pillole runs (${seconds.toFixed(1)} s). Ctrl-C stops it.`,
    ...lines,
    ...keys,
    ...warning,
    '',
  ].join('\n');
}
