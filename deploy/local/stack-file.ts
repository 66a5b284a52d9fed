/** `.local/stack.json`: where everything is, for programs. */
import { rmSync } from 'node:fs';
import type { Addresses, PlacedProcess } from './processes.ts';
import { writeFileAtomically } from './write-file.ts';

export type StackFile = {
  ingest?: string;
  api?: string;
  stream?: string;
  kafka: string;
  registry: string;
  clickhouse: string;
  postgres: string;
  /** A process that is down at this moment is not listed. */
  processes: Record<string, { pid: number; metrics: string }>;
};

export type StackEntry = { placed: PlacedProcess; pid: number | undefined };

/** The content of the file. */
export function describeStack(addresses: Addresses, entries: readonly StackEntry[]): StackFile {
  const served = entries.flatMap(({ placed }) => {
    const key = placed.spec.serves?.key;
    return key === undefined || placed.url === undefined ? [] : [[key, placed.url] as const];
  });
  const processes = entries.flatMap(({ placed, pid }) =>
    pid === undefined
      ? []
      : [[placed.spec.name, { pid, metrics: metricsUrl(placed.metricsPort) }] as const],
  );
  return {
    ...Object.fromEntries(served),
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

function metricsUrl(port: number): string {
  return `http://127.0.0.1:${port}/metrics`;
}
