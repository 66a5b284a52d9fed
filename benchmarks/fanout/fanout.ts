import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeMachine, type Machine } from '../machine.ts';
import { type Cell, type CellOptions, isWhole, measureCell } from './cell.ts';
import { buildLoadClient, startLoadClient } from './load-client.ts';
import { type MemoryReport, measureMemory } from './memory.ts';
import { openPillFeed } from './pill-feed.ts';
import { type Pattern, subscribeFrames } from './plan.ts';
import { isKept, measureSlow, type SlowReport } from './slow.ts';
import { buildStage, makeFolder, type OnStop } from './stage.ts';
import { startTarget, type Target } from './target.ts';

export interface FanoutOptions {
  readonly sockets: number;
  readonly rates: readonly number[];
  readonly patterns: readonly Pattern[];
  /** Length of each cell. */
  readonly seconds: number;
  readonly rounds: number;
  /** Load on each server before that is not counted: the JVM and V8 compile what is hot. */
  readonly warmUpSeconds: number;
  readonly memory: boolean;
  /** Sockets that stop reading, in a scenario of its own; 0 leaves it out. */
  readonly slow: number;
  /** Where the servers write CPU profiles. */
  readonly profileFolder: string | undefined;
  /** Another's server, in place of the stream process and the publish loop. */
  readonly other: Target | undefined;
  readonly say: (line: string) => void;
}

export interface FanoutResult {
  readonly benchmark: 'fanout';
  readonly at: string;
  readonly machine: Machine;
  /** Load average of the last minute at the end: this run's own is in it. */
  readonly loadAfter: number;
  readonly sockets: number;
  readonly seconds: number;
  readonly cells: readonly Cell[];
  /** Without a socket, at the highest rate: what reading the log alone costs a server. */
  readonly feedAlone: readonly Cell[];
  readonly memory: readonly MemoryReport[];
  readonly slow: readonly SlowReport[];
}

const WARM_UP_PER_S = 300;
const SETTLE_MS = 500;

/** What measures cells of the targets that run. */
type Measure = (target: Target, cell: Omit<CellOptions, 'restPids'>) => Promise<Cell>;

/**
 * Measures fan-out to many sockets, open loop: our stream process and the bare publish loop in
 * turn, or another's server alone. All that was started is stopped at the end, also on errors.
 */
export async function measureFanout(options: FanoutOptions): Promise<FanoutResult> {
  const stops: (() => Promise<unknown> | unknown)[] = [];
  try {
    return await measure(options, (stop) => stops.push(stop));
  } finally {
    for (const stop of stops.reverse()) {
      try {
        await stop();
      } catch (error) {
        options.say(`not stopped: ${(error as Error).message}`);
      }
    }
  }
}

async function measure(options: FanoutOptions, onStop: OnStop): Promise<FanoutResult> {
  const { say, other, sockets, seconds, rates, warmUpSeconds } = options;
  const machine = describeMachine();
  const folder = makeFolder(onStop);
  const binary = buildLoadClient(folder);
  const stage = other === undefined ? await buildStage(folder, say, onStop) : undefined;
  const start = async (name: 'stream' | 'loop', profileFolder?: string) => {
    const started = await startTarget(name, stage!, profileFolder);
    onStop(started.stop);
    return started;
  };
  const targets: Target[] =
    other === undefined
      ? [await start('stream', options.profileFolder), await start('loop', options.profileFolder)]
      : [other];
  const feeds = new Map(
    await Promise.all(
      targets.map(async ({ name, log }) => [name, await openPillFeed(log)] as const),
    ),
  );
  for (const { close } of feeds.values()) onStop(close);

  const restPids = () => [process.pid, ...Object.values(stage?.engines.pids() ?? {})];
  const measureOne: Measure = async (target, cell) => {
    const { url, key, saysLive } = target;
    const frames = subscribeFrames(cell.pattern, cell.sockets);
    const { sockets } = cell;
    const client = startLoadClient({
      ...{ binary, url, key, saysLive, sockets, folder, subscribeFrames: frames },
    });
    try {
      await client.ready();
      await sleep(SETTLE_MS);
      const own = { ...cell, restPids: restPids() };
      return await measureCell(target, client, feeds.get(target.name)!, own);
    } finally {
      await client.stop();
    }
  };

  for (const target of warmUpSeconds > 0 ? targets : []) {
    say(`warm-up, not counted: ${target.name}, ${warmUpSeconds} s`);
    const warmUp = { pattern: 'all', perS: WARM_UP_PER_S, seconds: warmUpSeconds } as const;
    await measureOne(target, { ...warmUp, sockets, round: 0 });
  }
  const cells = await measureCells(options, targets, measureOne);
  const feedAlone: Cell[] = [];
  for (const target of other === undefined ? targets : []) {
    const cell = { pattern: 'all', perS: Math.max(...rates), seconds, sockets: 0 } as const;
    feedAlone.push(await measureOne(target, { ...cell, round: 0 }));
  }
  const slow: SlowReport[] = [];
  const stream = targets.find(({ name }) => name === 'stream');
  for (let round = 1; stream && options.slow > 0 && round <= options.rounds; round += 1) {
    say(`${options.slow} of ${sockets} sockets stop reading, round ${round}`);
    const place = { sockets, slow: options.slow, round, binary, folder, restPids: restPids() };
    slow.push(await measureSlow(stream, feeds.get('stream')!, place));
  }
  const memory: MemoryReport[] = [];
  for (const name of options.memory && other === undefined ? (['stream', 'loop'] as const) : []) {
    say(`memory of ${sockets} sockets, ${name}`);
    const fresh = await start(name);
    memory.push(await measureMemory(fresh, { sockets, seconds, binary, folder }));
    await fresh.stop();
  }
  const at = new Date().toISOString();
  const loadAfter = os.loadavg()[0] ?? 0;
  return {
    ...{ benchmark: 'fanout', at, machine, loadAfter, sockets, seconds, cells, feedAlone },
    ...{ memory, slow },
  };
}

/**
 * The targets take turns at each rate, each first in every other round, so that what disturbs the
 * machine disturbs them alike.
 */
async function measureCells(
  options: FanoutOptions,
  targets: readonly Target[],
  measureOne: Measure,
): Promise<Cell[]> {
  const { patterns, rates, rounds, sockets, seconds, say } = options;
  const cells: Cell[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const pattern of patterns) {
      for (const perS of rates) {
        for (const target of round % 2 === 1 ? targets : targets.toReversed()) {
          const cell = await measureOne(target, { pattern, perS, seconds, round, sockets });
          const { delivered, serverSecondsPerMillion: cpu, lost } = cell;
          say(
            `${pattern} ${perS}/s ${target.name}: ${cpu?.toFixed(2) ?? '?'} CPU s a million, ` +
              `p99 ${(delivered.p99 / 1000).toFixed(1)} ms, lost ${lost}`,
          );
          cells.push(cell);
        }
      }
    }
  }
  return cells;
}

/** Whether a result proves anything: every pill arrived everywhere, none was sent too late. */
export function isProof({ cells, slow }: FanoutResult): boolean {
  return cells.every((cell) => cell.valid && isWhole(cell)) && slow.every(isKept);
}
