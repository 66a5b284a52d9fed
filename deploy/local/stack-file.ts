import { rmSync } from 'node:fs';
import type { StackFile } from '../../lib/stack-file.ts';
import { writeFileAtomically } from '../../lib/write-file.ts';
import type { Addresses, PlacedProcess } from './processes.ts';

export interface StackEntry {
  readonly placed: PlacedProcess;
  readonly pid: number | undefined;
}

/** The content of `.local/stack.json`: where everything is, for programs. */
export function describeStack(addresses: Addresses, entries: readonly StackEntry[]): StackFile {
  const processes = entries.flatMap(({ placed, pid }) =>
    pid === undefined
      ? []
      : [[placed.spec.name, { pid, metrics: metricsUrl(placed.metricsPort) }] as const],
  );
  return {
    ingest: urlOf(entries, 'ingest'),
    api: urlOf(entries, 'api'),
    stream: urlOf(entries, 'stream'),
    kafka: addresses.kafkaBrokers,
    registry: addresses.registryUrl,
    clickhouse: addresses.clickhouseUrl,
    postgres: addresses.postgresUrl,
    processes: Object.fromEntries(processes),
  };
}

/** Replaces the file in one step. */
export function writeStackFile(file: string, stack: StackFile): void {
  writeFileAtomically(file, `${JSON.stringify(stack, null, 2)}\n`);
}

/** A stack that is down has no file. */
export function removeStackFile(file: string): void {
  rmSync(file, { force: true });
}

/** @throws Error when nothing serves it: the list of processes is wrong. */
function urlOf(entries: readonly StackEntry[], key: 'ingest' | 'api' | 'stream'): string {
  const url = entries.find(({ placed }) => placed.spec.serves?.key === key)?.placed.url;
  if (url === undefined) throw new Error(`No process serves ${key}.`);
  return url;
}

function metricsUrl(port: number): string {
  return `http://127.0.0.1:${port}/metrics`;
}
