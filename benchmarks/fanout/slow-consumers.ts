import { setTimeout as sleep } from 'node:timers/promises';
import { subscribeFrame } from '../harness/bench-socket.ts';
import { residentBytesOf } from '../harness/cpu.ts';
import type { ClientReport, LoadClient, OpenClient } from '../load/load-client.ts';
import { isWhole, measureCell, type Server } from './cell.ts';

/** The load with all sockets reading, or with some that stop, half of these in `latest` mode. */
export type SlowCell = Awaited<ReturnType<typeof measureSlow>> & { readonly round: number };

const PER_S = 1_000;
/** Well below the 24 s after which the server ends a socket that answers no ping. */
const SECONDS = 18;
/** Long ids: the kernel takes some MiB for a socket before the server's own queue begins to fill. */
const ID_PADDING = 72;
const CATCH_UP_MAX_MS = 10_000;

/** Measures one load. @param stalls whether the `slow` sockets stop reading */
export async function measureSlow(
  server: Server & { readonly pid: number },
  openClient: OpenClient,
  stalls: boolean,
  load: {
    readonly sockets: number;
    readonly slow: number;
    readonly restPids: readonly (number | undefined)[];
  },
) {
  const { sockets, slow, restPids } = load;
  const clients: LoadClient[] = [];
  const open = async (count: number, mode: 'all' | 'latest', narrow: boolean) => {
    const client = await openClient(server, count, [subscribeFrame(['*'], mode)], { narrow });
    clients.push(client);
    return client;
  };
  try {
    const others = await open(sockets - slow, 'all', false);
    const latest = await open(Math.floor(slow / 2), 'latest', true);
    const all = await open(slow - Math.floor(slow / 2), 'all', true);
    const stalling = stalls ? [all, latest] : [];
    for (const client of stalling) await client.pause();
    const cell = await measureCell(server, others, {
      pattern: 'all',
      perS: PER_S,
      seconds: SECONDS,
      restPids,
      sockets: sockets - slow,
      idPadding: ID_PADDING,
      unjudged: [all, latest],
    });
    const bytes = residentBytesOf(server.pid);
    for (const client of stalling) await client.resume();
    const gotInLatest = await settled(latest);
    return {
      stalls,
      slow,
      cell,
      bytes,
      /** Sockets in `all` mode that were closed as slow consumers when they read again. */
      closed: (await settled(all)).slow,
      /** Sockets in `latest` mode: pills they got, and pills reported as skipped; others are lost. */
      latestGot: gotInLatest.received,
      latestSkipped: gotInLatest.skipped,
      latestWanted: gotInLatest.sockets * cell.pills,
    };
  } finally {
    for (const client of clients) await client.stop();
  }
}

/**
 * Whether the other sockets got all pills, and the slow sockets the pills that the stream
 * guarantees.
 */
export function isKept({ stalls, slow, cell, closed, ...latest }: SlowCell): boolean {
  if (!isWhole(cell)) return false;
  const isAccounted = latest.latestGot + latest.latestSkipped === latest.latestWanted;
  return !stalls || (isAccounted && closed === slow - Math.floor(slow / 2));
}

/** The report of a client when nothing more arrives. */
async function settled(client: LoadClient): Promise<ClientReport> {
  const deadline = performance.now() + CATCH_UP_MAX_MS;
  let last = -1;
  for (;;) {
    const report = await client.report();
    if (report.received === last || performance.now() > deadline) return report;
    last = report.received;
    await sleep(500);
  }
}
