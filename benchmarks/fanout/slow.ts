import { setTimeout as sleep } from 'node:timers/promises';
import { residentBytesOf } from '../proc-stat.ts';
import { type Cell, isWhole, measureCell } from './cell.ts';
import { type ClientReport, type LoadClient, startLoadClient } from './load-client.ts';
import type { PillFeed } from './pill-feed.ts';
import type { Target } from './target.ts';

/** What the others feel when some sockets stop reading, and what becomes of these. */
export interface SlowReport {
  readonly round: number;
  /** Sockets that may stop reading; half of them in `latest` mode. */
  readonly slow: number;
  /** All others, while these read, and while they do not. */
  readonly reading: Cell;
  readonly deaf: Cell;
  /** Resident memory of the server at the end of each. */
  readonly readingBytes: number;
  readonly deafBytes: number;
  /** Of those in `all` mode: all were closed as slow consumers, when they read again. */
  readonly closed: number;
  /** Of those in `latest` mode: pills they got, and pills said to be skipped; with what they miss. */
  readonly latestGot: number;
  readonly latestSkipped: number;
  readonly latestMissing: number;
}

export interface SlowOptions {
  readonly sockets: number;
  readonly slow: number;
  readonly round: number;
  readonly binary: string;
  readonly folder: string;
  readonly restPids: readonly number[];
}

const PER_S = 1_000;
/** Well below the 24 s after which the server ends a socket that answers no ping. */
const SECONDS = 18;
/** Long ids: the kernel takes some MiB for a socket before the server's own queue begins to fill. */
const ID_PADDING = 72;
const CATCH_UP_MAX_MS = 10_000;

/** Measures the same load twice: with all sockets reading, and with some that stop. */
export async function measureSlow(
  target: Target,
  feed: PillFeed,
  options: SlowOptions,
): Promise<SlowReport> {
  const { round, slow } = options;
  const order = round % 2 === 1 ? (['reading', 'deaf'] as const) : (['deaf', 'reading'] as const);
  const done = new Map<'reading' | 'deaf', Awaited<ReturnType<typeof measureOnce>>>();
  for (const which of order) {
    done.set(which, await measureOnce(target, feed, options, which === 'deaf'));
  }
  const [reading, deaf] = [done.get('reading')!, done.get('deaf')!];
  const { received, skipped, sockets } = deaf.latest;
  return {
    ...{ round, slow, reading: reading.cell, deaf: deaf.cell },
    ...{ readingBytes: reading.bytes, deafBytes: deaf.bytes, closed: deaf.all.slow },
    ...{ latestGot: received, latestSkipped: skipped },
    latestMissing: sockets * deaf.cell.pills - received - skipped,
  };
}

/** Whether the others got everything, and the slow ones what they are promised. */
export function isKept({ slow, reading, deaf, closed, latestMissing }: SlowReport): boolean {
  const allMode = slow - Math.floor(slow / 2);
  return isWhole(reading) && isWhole(deaf) && closed === allMode && latestMissing === 0;
}

async function measureOnce(
  target: Target,
  feed: PillFeed,
  { sockets, slow, round, binary, folder, restPids }: SlowOptions,
  stopReading: boolean,
) {
  const clients: LoadClient[] = [];
  const open = async (count: number, mode: 'all' | 'latest', narrow: boolean) => {
    const { url, key, saysLive } = target;
    const frame = { op: 'subscribe', id: '1', symbols: ['*'], mode, snapshot: false };
    const client = startLoadClient({
      ...{ binary, folder, url, key, saysLive, narrow, sockets: count },
      subscribeFrames: [JSON.stringify(frame)],
    });
    clients.push(client);
    await client.ready();
    return client;
  };
  try {
    const others = sockets - slow;
    const most = await open(others, 'all', false);
    const latest = await open(Math.floor(slow / 2), 'latest', true);
    const all = await open(slow - Math.floor(slow / 2), 'all', true);
    const cell = await measureCell(target, most, feed, {
      ...{ pattern: 'all', perS: PER_S, seconds: SECONDS, round, restPids },
      ...{ sockets: others, idPadding: ID_PADDING },
      async onRun(run, pills) {
        for (const client of [all, latest]) {
          await client.begin(run, pills);
          if (stopReading) await client.pause();
        }
      },
    });
    const bytes = residentBytesOf(target.pid) ?? Number.NaN;
    for (const client of [all, latest]) if (stopReading) await client.goOn();
    const reports = { all: await settled(all), latest: await settled(latest) };
    return { cell, bytes, ...reports };
  } finally {
    for (const client of clients) await client.stop();
  }
}

/** What a client has got when nothing more comes. */
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
