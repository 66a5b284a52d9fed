import { setTimeout as sleep } from 'node:timers/promises';
import { residentBytesOf } from '../proc-stat.ts';
import { measureCell } from './cell.ts';
import { type LoadClient, startLoadClient } from './load-client.ts';
import { openPillFeed } from './pill-feed.ts';
import { subscribeFrames, type TargetName } from './plan.ts';
import type { Target } from './target.ts';

/** What a socket takes of a server's resident memory, in bytes. Kernel buffers are not in it. */
export interface MemoryReport {
  readonly target: TargetName;
  readonly sockets: number;
  readonly residentBytes: number;
  /** Subscribed to `*`, without pills. */
  readonly idleBytesPerSocket: number;
  /** While it gets pills. */
  readonly busyBytesPerSocket: number;
}

export interface MemoryOptions {
  readonly sockets: number;
  readonly seconds: number;
  readonly binary: string;
  readonly folder: string;
}

/** Opened before the first reading, so that code and heap that all sockets share are not counted. */
const FIRST_SOCKETS = 100;
const BUSY_PER_S = 100;
/** A whole round of heartbeats. */
const SETTLE_MS = 6_000;

/** Measures a target that has just been started: what it holds with 100 sockets, and with more. */
export async function measureMemory(
  target: Target,
  { sockets, seconds, binary, folder }: MemoryOptions,
): Promise<MemoryReport> {
  const feed = await openPillFeed(target.log);
  const clients: LoadClient[] = [];
  const open = async (count: number): Promise<LoadClient> => {
    const { url, key, saysLive } = target;
    const frames = subscribeFrames('all', count);
    const client = startLoadClient({
      ...{ binary, url, key, saysLive, folder, sockets: count, subscribeFrames: frames },
    });
    clients.push(client);
    await client.ready();
    return client;
  };
  const busy = async (client: LoadClient, count: number) => {
    const options = { pattern: 'all', perS: BUSY_PER_S, seconds, round: 0 } as const;
    await measureCell(target, client, feed, { ...options, sockets: count, restPids: [] });
    return residentBytesOf(target.pid) ?? Number.NaN;
  };
  const idle = async () => {
    await sleep(SETTLE_MS);
    return residentBytesOf(target.pid) ?? Number.NaN;
  };
  try {
    const first = await open(FIRST_SOCKETS);
    const fewBusy = await busy(first, FIRST_SOCKETS);
    const fewIdle = await idle();
    const second = await open(sockets);
    const manyIdle = await idle();
    const manyBusy = await busy(second, sockets);
    return {
      target: target.name,
      sockets,
      residentBytes: manyBusy,
      idleBytesPerSocket: (manyIdle - fewIdle) / sockets,
      busyBytesPerSocket: (manyBusy - fewBusy) / sockets,
    };
  } finally {
    for (const client of clients) await client.stop();
    await feed.close();
  }
}
