import type { StackFile } from '../../lib/config/stack-file.ts';
import type { Addresses, ProcessInstance } from './processes.ts';

export interface StackEntry {
  readonly instance: ProcessInstance;
  readonly pid: number | undefined;
}

/**
 * The content of `.local/stack.json`: all addresses, for programs of this user. PostgreSQL is that of
 * the operator's role.
 */
export function describeStack(addresses: Addresses, entries: readonly StackEntry[]): StackFile {
  const processes = entries.flatMap(({ instance, pid }) =>
    pid === undefined
      ? []
      : [
          [
            instance.spec.name,
            { pid, metrics: `http://127.0.0.1:${instance.metricsPort}/metrics` },
          ] as const,
        ],
  );
  return {
    ingest: urlOf(entries, 'ingest'),
    api: urlOf(entries, 'api'),
    stream: urlOf(entries, 'stream'),
    kafka: addresses.kafkaBrokers,
    registry: addresses.registryUrl,
    clickhouse: addresses.clickhouseUrl,
    postgres: addresses.postgresUrls.admin,
    processes: Object.fromEntries(processes),
  };
}

/** @throws Error when no process serves `key`: the list of processes is wrong. */
function urlOf(entries: readonly StackEntry[], key: 'ingest' | 'api' | 'stream'): string {
  const url = entries.find(({ instance }) => instance.spec.serves?.key === key)?.instance.url;
  if (url === undefined) throw new Error(`No process serves ${key}.`);
  return url;
}
