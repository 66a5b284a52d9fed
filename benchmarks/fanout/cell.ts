import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMicros } from '../clock.ts';
import { LATENESS_P99_MAX_MICROS } from '../end-to-end/plan.ts';
import type { Percentiles } from '../histogram.ts';
import { busySeconds, cpuSecondsOf } from '../proc-stat.ts';
import type { ClientReport, LoadClient } from './load-client.ts';
import { percentilesOf } from './percentiles.ts';
import type { FeedReport, PillFeed } from './pill-feed.ts';
import { type Pattern, type PillPlan, pillCount, type TargetName, wantedOf } from './plan.ts';
import type { Target } from './target.ts';

/** One server, one pattern, one rate, once. */
export interface Cell {
  readonly target: TargetName;
  readonly pattern: Pattern;
  readonly perS: number;
  readonly round: number;
  readonly sockets: number;
  readonly pills: number;
  readonly wantedPerSocket: number;
  /** False where pills were sent too late: then the latencies measure the generator. */
  readonly valid: boolean;
  readonly feed: FeedReport;
  readonly client: ClientReport;
  /** Planned send to the pill in the load client's hands, over all sockets, in µs. */
  readonly delivered: Percentiles;
  /** Pills that sockets wanted and did not get, over all of them. */
  readonly lost: number;
  /** From the first planned pill to the last arrival, at least the run's length. */
  readonly seconds: number;
  readonly deliveriesPerS: number;
  /** CPU seconds of the server in that time; null where it is another's. */
  readonly serverSeconds: number | null;
  readonly serverSecondsPerMillion: number | null;
  /** Cores that were busy in that time: server, load client, all else of this run, strangers. */
  readonly serverCores: number | null;
  readonly clientCores: number;
  readonly restCores: number;
  readonly otherCores: number;
}

/** Between the order to run and the first planned pill, in µs. */
const HEAD_START_MICROS = 300_000;
const ARRIVALS_MAX_MS = 20_000;
const ARRIVALS_STALL_MS = 5_000;
const POLL_MS = 25;
/** A double may still be on its way when the last first one has come. */
const DOUBLES_MS = 200;

export interface CellOptions {
  readonly pattern: Pattern;
  readonly perS: number;
  readonly seconds: number;
  readonly round: number;
  readonly sockets: number;
  /** Processes that belong to the run beside server and load client: the log, the generator. */
  readonly restPids: readonly number[];
  /** Called between the name of the run being known and its first pill. */
  readonly onRun?: (run: string, pills: number) => Promise<void>;
  /** Makes ids, and with them pills, longer by so many characters. */
  readonly idPadding?: number;
}

let runs = 0;

/** Sends the pills of one run and waits until every socket has its own. */
export async function measureCell(
  target: Target,
  client: LoadClient,
  feed: PillFeed,
  options: CellOptions,
): Promise<Cell> {
  const { pattern, perS, seconds, round, sockets, restPids } = options;
  runs += 1;
  const pills = pillCount(perS, seconds);
  const wantedPerSocket = wantedOf(pattern, pills);
  const wanted = wantedPerSocket * sockets;
  const run = `f${Date.now().toString(36)}n${runs}${'x'.repeat(options.idPadding ?? 0)}`;
  await client.begin(run, pills);
  await options.onRun?.(run, pills);
  const plan: PillPlan = {
    ...{ run, perS, pills },
    startMicros: monotonicMicros() + HEAD_START_MICROS,
  };
  const running = feed.run(plan);
  running.catch(() => undefined); // looked at below, after a wait
  await sleep(HEAD_START_MICROS / 1_000);
  const cpu = () => ({
    at: monotonicMicros(),
    server: cpuSecondsOf(target.pid),
    client: cpuSecondsOf(client.pid) ?? 0,
    rest: restPids.reduce((sum, pid) => sum + (cpuSecondsOf(pid) ?? 0), 0),
    machine: busySeconds(),
  });
  const before = cpu();
  const told = await running;
  await allArrived(client, wanted);
  const after = cpu();
  await sleep(DOUBLES_MS);
  const got = await client.report();
  const lasted = (after.at - before.at) / 1e6;
  const serverSeconds =
    before.server === null || after.server === null ? null : after.server - before.server;
  const cores = (what: 'client' | 'rest' | 'machine') => (after[what] - before[what]) / lasted;
  const serverCores = serverSeconds === null ? null : serverSeconds / lasted;
  const ownCores = (serverCores ?? 0) + cores('client') + cores('rest');
  return {
    ...{ target: target.name, pattern, perS, round, sockets, pills, wantedPerSocket },
    valid: told.lateness.p99 <= LATENESS_P99_MAX_MICROS,
    feed: told,
    client: got,
    delivered: percentilesOf(got.histogram),
    lost: wanted - got.received,
    seconds: lasted,
    deliveriesPerS: got.received / lasted,
    serverSeconds,
    serverSecondsPerMillion:
      serverSeconds === null || got.received === 0 ? null : (serverSeconds * 1e6) / got.received,
    serverCores,
    clientCores: cores('client'),
    restCores: cores('rest'),
    otherCores: Math.max(0, cores('machine') - ownCores),
  };
}

/** Whether every socket got each pill it wanted, once, and none was closed. */
export function isWhole({ client, wantedPerSocket, feed, sockets }: Cell): boolean {
  if (feed.failed > 0 || client.doubled > 0 || client.closed > 0 || client.errors > 0) return false;
  return (
    sockets === 0 ||
    (client.receivedMin === wantedPerSocket && client.receivedMax === wantedPerSocket)
  );
}

/** Waits for the last pills; gives up when nothing more arrives. */
async function allArrived(client: LoadClient, wanted: number): Promise<void> {
  const deadline = performance.now() + ARRIVALS_MAX_MS;
  let last = -1;
  let lastAt = performance.now();
  for (;;) {
    const received = await client.received();
    const now = performance.now();
    if (received >= wanted || now > deadline) return;
    if (received > last) {
      last = received;
      lastAt = now;
    } else if (now - lastAt > ARRIVALS_STALL_MS) return;
    await sleep(POLL_MS);
  }
}
