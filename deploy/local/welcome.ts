import type { Tier } from '../../domain/access/tiers.ts';
import type { StackFile } from '../../lib/config/stack-file.ts';
import { withoutCredentials } from '../../lib/config/without-credentials.ts';
import type { Engines } from './engines.ts';
import type { StackLayout } from './stack-layout.ts';

/** The block with all addresses that the launcher prints when everything runs. */
export function welcome(options: {
  readonly stack: StackFile;
  readonly kinds: Engines['kinds'];
  readonly layout: StackLayout;
  /** Processes that are not ready yet. */
  readonly late: readonly string[];
  /** What is open without credentials or payment, and why. */
  readonly open: readonly string[];
  readonly seconds: number;
  /** New keys; they are shown this once. */
  readonly demoKeys: Readonly<Record<Tier, string>> | undefined;
  readonly hasDemoAccounts: boolean;
}): string {
  const { stack, kinds, layout, late, demoKeys } = options;
  const rows: [string, string][] = [
    ['page', `${stack.api}/`],
    ['send pills', `POST ${stack.ingest}/api/pillole`],
    ['read', `${stack.api}/api/pills/latest`],
    ['stream', `${stack.stream}/api/stream`],
    ['Kafka', `${withoutCredentials(stack.kafka)} (${kinds.kafka})`],
    ['registry', `${stack.registry} (${kinds.registry})`],
    ['ClickHouse', `${withoutCredentials(stack.clickhouse)} (${kinds.clickhouse})`],
    ['PostgreSQL', `${withoutCredentials(stack.postgres)} (${kinds.postgres})`],
    ['reference', `${stack.api}/docs`],
    ['mail', layout.outbox],
    [
      'demo keys',
      options.hasDemoAccounts ? layout.demoKeys : 'none (DEMO_ACCOUNTS=yes creates them)',
    ],
    ['open', options.open.join('; ') || 'nothing'],
    ['passwords', layout.passwords],
    ['logs', layout.logs],
    ['for programs', layout.stack],
  ];
  const lines = rows.map(([label, value]) => `  ${label.padEnd(13)} ${value}`);
  const warning = late.length === 0 ? [] : [`  not ready yet: ${late.join(', ')}; see their logs`];
  const keys = Object.entries(demoKeys ?? {}).map(
    ([tier, key]) => `  demo key      ${tier.padEnd(13)} ${key}`,
  );
  return [
    '',
    `pillole runs (${options.seconds.toFixed(1)} s). Ctrl-C stops it.`,
    ...lines,
    ...keys,
    ...warning,
    '',
  ].join('\n');
}
