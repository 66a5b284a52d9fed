import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { setPriority } from '../../lib/child-process/priority.ts';
import { monotonicMicros } from '../clock.ts';
import { LATENESS_P99_MAX_MICROS } from '../end-to-end/plan.ts';
import { buildLoadClient, type LoadClient, startLoadClient } from '../fanout/load-client.ts';
import { percentilesOf } from '../fanout/percentiles.ts';
import { openPillFeed, type PillFeed } from '../fanout/pill-feed.ts';
import { type PillPlan, pillCount, subscribeFrames } from '../fanout/plan.ts';
import { buildStage, makeFolder, type OnStop, type Stage } from '../fanout/stage.ts';
import { type StartedTarget, startTarget } from '../fanout/target.ts';
import type { Percentiles } from '../histogram.ts';
import { describeMachine, type Machine } from '../machine.ts';
import { openSlowReaders } from './slow-readers.ts';
import { startDedicated, startFlood } from './stage.ts';

/** What happens to the Pro process meanwhile. */
export const TROUBLES = ['idle', 'overload', 'slow', 'crash'] as const;
export type Trouble = (typeof TROUBLES)[number];

export interface DedicatedOptions {
  readonly perS: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly proSockets: number;
  readonly slowReaders: number;
  /** Of the Pro process; 0 = as the rest. */
  readonly proNice: number;
  readonly say: (line: string) => void;
}

export interface Cell {
  readonly trouble: Trouble;
  readonly round: number;
  readonly pills: number;
  readonly lost: number;
  readonly doubled: number;
  /** Planned send to the pill in the dedicated client's hands, in µs. */
  readonly delivered: Percentiles;
  /** Planned send to the log's acknowledgement: what is no stream process's doing. */
  readonly acknowledged: Percentiles;
  /** How late pills were sent against the plan, in µs. */
  readonly lateness: Percentiles;
  /** False where that is too late: then the latencies measure the generator. */
  readonly valid: boolean;
  /** What was done to the Pro process. */
  readonly done: string;
}

export interface DedicatedResult {
  readonly benchmark: 'dedicated';
  readonly at: string;
  readonly machine: Machine;
  readonly loadAfter: number;
  readonly options: Omit<DedicatedOptions, 'say'>;
  readonly cells: readonly Cell[];
}

/** Ten times the handshakes that a process lets in. */
const KNOCKS_PER_S = 10_000;
const HEAD_START_MICROS = 300_000;
const SETTLE_MS = 1_000;
const ARRIVALS_MAX_MS = 10_000;
/** Of a run's length: when the Pro process is killed. */
const CRASH_AT = 0.3;

/** Measures one dedicated client while the Pro process beside is idle or in trouble, in turns. */
export async function measureDedicated(options: DedicatedOptions): Promise<DedicatedResult> {
  const stops: (() => Promise<unknown> | unknown)[] = [];
  try {
    return await measure(options, (stop) => stops.push(stop));
  } finally {
    for (const stop of stops.reverse()) {
      await Promise.resolve(stop()).catch((error: Error) => options.say(error.message));
    }
  }
}

interface Place {
  readonly stage: Stage;
  readonly folder: string;
  readonly binary: string;
  readonly feed: PillFeed;
  readonly dedicated: LoadClient;
  readonly options: DedicatedOptions;
}

async function measure(options: DedicatedOptions, onStop: OnStop): Promise<DedicatedResult> {
  const { say, rounds, ...told } = options;
  const machine = describeMachine();
  const folder = makeFolder(onStop);
  const binary = buildLoadClient(folder);
  const stage = await buildStage(folder, say, onStop);
  const url = await startDedicated(stage, onStop);
  const feed = await openPillFeed(stage.logs.stream);
  onStop(feed.close);
  const dedicated = startLoadClient({
    ...{ binary, url, key: stage.key, sockets: 1, folder, saysLive: true },
    subscribeFrames: subscribeFrames('all', 1),
  });
  onStop(dedicated.stop);
  await dedicated.ready();
  const place: Place = { stage, folder, binary, feed, dedicated, options };
  say('warm-up, not counted');
  await runTrouble(place, 'idle', 0);
  const cells: Cell[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (let turn = 0; turn < TROUBLES.length; turn += 1) {
      // Another one begins each round: what drifts hits all alike.
      const trouble = TROUBLES[(round + turn) % TROUBLES.length]!;
      const cell = await runTrouble(place, trouble, round);
      const { delivered, lateness, done } = cell;
      const ms = (micros: number) => (micros / 1_000).toFixed(2);
      say(
        `${trouble}: p50 ${ms(delivered.p50)}, p99 ${ms(delivered.p99)} ms, sent ` +
          `${ms(lateness.p99)} ms late at p99${cell.valid ? '' : ': INVALID'}; ${done}`,
      );
      cells.push(cell);
    }
  }
  const at = new Date().toISOString();
  const loadAfter = os.loadavg()[0] ?? 0;
  return { benchmark: 'dedicated', at, machine, loadAfter, options: { ...told, rounds }, cells };
}

/** A Pro process of its own for each cell, with its sockets; trouble begins before the pills do. */
async function runTrouble(place: Place, trouble: Trouble, round: number): Promise<Cell> {
  const { stage, folder, binary, options } = place;
  let pro = await startPro(place);
  const clients: LoadClient[] = [];
  const addSockets = async () => {
    const client = startLoadClient({
      ...{ binary, url: pro.url, key: stage.key, sockets: options.proSockets, folder },
      ...{ saysLive: true, subscribeFrames: subscribeFrames('all', 1) },
    });
    setPriority(client.pid, 19); // its clients would be on other machines
    clients.push(client);
    await client.ready();
  };
  try {
    if (trouble !== 'idle') await addSockets();
    const flood = trouble === 'overload' ? startFlood(stage, pro.url, KNOCKS_PER_S) : undefined;
    const slow =
      trouble === 'slow' ? openSlowReaders(pro.url, stage.key, options.slowReaders) : undefined;
    await sleep(SETTLE_MS);
    const running = runPills(place, round, trouble);
    if (trouble === 'crash') {
      await sleep(options.seconds * 1_000 * CRASH_AT);
      process.kill(pro.pid, 'SIGKILL');
      pro = await startPro(place);
      await addSockets();
    }
    const cell = await running;
    const knocked = await flood?.();
    slow?.close();
    return { ...cell, done: doneOf(trouble, options, knocked, slow?.ended()) };
  } finally {
    await Promise.all(clients.map((client) => client.stop()));
    await pro.stop();
  }
}

async function startPro({ stage, options }: Place): Promise<StartedTarget> {
  const pro = await startTarget('stream', stage, undefined);
  if (options.proNice !== 0) setPriority(pro.pid, options.proNice);
  return pro;
}

let runs = 0;

async function runPills(
  { feed, dedicated, options }: Place,
  round: number,
  trouble: Trouble,
): Promise<Omit<Cell, 'done'>> {
  runs += 1;
  const { perS, seconds } = options;
  const pills = pillCount(perS, seconds);
  const run = `d${Date.now().toString(36)}n${runs}`;
  await dedicated.begin(run, pills);
  const startMicros = monotonicMicros() + HEAD_START_MICROS;
  const plan: PillPlan = { run, perS, pills, startMicros };
  const { acknowledged, lateness } = await feed.run(plan);
  const deadline = performance.now() + ARRIVALS_MAX_MS;
  while ((await dedicated.received()) < pills && performance.now() < deadline) await sleep(50);
  const { received, doubled, histogram } = await dedicated.report();
  return {
    ...{ trouble, round, pills, lost: pills - received, doubled, acknowledged },
    ...{ lateness, valid: lateness.p99 <= LATENESS_P99_MAX_MICROS },
    delivered: percentilesOf(histogram),
  };
}

function doneOf(
  trouble: Trouble,
  { proSockets, slowReaders, seconds }: DedicatedOptions,
  knocked: number | undefined,
  ended: number | undefined,
): string {
  if (trouble === 'idle') return 'nobody there';
  if (trouble === 'crash') return `${proSockets} sockets, killed and started again`;
  if (trouble === 'slow') return `${slowReaders} unread replays, ${ended} ended for it`;
  return `${proSockets} sockets, ${Math.round((knocked ?? 0) / seconds)} handshakes/s answered`;
}
