import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, startChild } from '../../lib/child-process/child.ts';
import { setPriority } from '../../lib/child-process/priority.ts';
import { type Supervised, supervise } from '../../lib/child-process/supervise.ts';
import { isReport, type Report } from '../../lib/dedicated/channel.ts';
import type { StateReport } from '../../lib/dedicated/states.ts';
import type { Denial, Wanted } from '../../lib/dedicated/wanted.ts';
import type { Log } from '../../lib/log.ts';
import { packageRoot } from '../../lib/root.ts';
import type { DedicatedConfig } from './config.ts';
import { LIMITS } from './limits.ts';
import { createPulse } from './pulse.ts';

/** One dedicated socket's process, kept alive. */
export interface One {
  /** Asks how it is; the answer is in `report` a little later. */
  ask(id: number): void;
  /** @param ends of the log when `id` was asked */
  report(id: number, ends: ReadonlyMap<number, number> | undefined): StateReport;
  /** Reads the log to its end, and not for too long. */
  isStarting(): boolean;
  /** Kills it when it hangs, serving or not; it is started again then. */
  killIfDead(): void;
  /** Closes its sockets with the reason, and ends it for good. */
  end(denial: Denial): Promise<void>;
  /** Drains it, and ends it for good. */
  stop(): Promise<void>;
}

/** What a dedicated process is, and how long it may take. */
export interface Program {
  readonly entry?: string;
  readonly limits?: { readonly [L in 'startingCountsMs' | 'silentMaxMs' | 'stuckMaxMs']: number };
}

const ENTRY = path.join(packageRoot, 'dist', 'gateway', 'stream', 'main.js');

/**
 * Starts a process, and starts it again whenever it ends, on the same port.
 * @throws when it cannot be started at all
 */
export async function runOne(
  { name, accountId, port }: Wanted,
  config: DedicatedConfig,
  log: Log,
  onChange: () => void,
  { entry = ENTRY, limits = LIMITS }: Program = {},
): Promise<One> {
  let state: StateReport['state'] = 'starting';
  let reason: string | undefined;
  let since = new Date();
  let starts = 0;
  let child: Child | undefined;
  let last: Report | undefined;
  const pulse = createPulse(limits, () => performance.now());
  let isEnding = false;
  let onReady: () => void = () => undefined;

  const change = (to: StateReport['state'], why: string | undefined) => {
    const isNew = state !== to || reason !== why;
    if (state !== to) since = new Date();
    state = to;
    reason = why;
    if (isNew) onChange();
  };
  const onMessage = (message: unknown) => {
    if (!isReport(message)) return;
    last = message;
    pulse.heard(message);
    const { notReady } = message;
    if (notReady !== undefined) change('starting', `Not ready: ${notReady}.`);
    else change('ready', undefined);
    if (notReady === undefined) onReady();
  };

  const supervised: Supervised = await supervise({
    name,
    async start() {
      starts += 1;
      last = undefined;
      const started = await startChild({
        name,
        command: process.execPath,
        args: ['--enable-source-maps', entry],
        env: {
          ...config.childEnv,
          STREAM_HOST: config.host,
          STREAM_PORT: String(port),
          DEDICATED_NAME: name,
          DEDICATED_ACCOUNT: accountId,
          METRICS_PORT: '0',
        },
        runFolder: config.runFolder,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: LIMITS.stopMs,
        onMessage,
      });
      child = started;
      pulse.started();
      const isSet = setPriority(started.pid, config.nice);
      const told = { dedicated: name, pid: started.pid, port };
      log.info({ ...told, nice: isSet ? config.nice : 'as the supervisor' }, 'started');
      change('starting', 'Its process reads the log to its end.');
      return started;
    },
    ready: (one) =>
      new Promise((resolve, reject) => {
        onReady = resolve;
        void one.exited.then(() => reject(new Error('it ended')));
      }),
    say: (line) => {
      if (!isEnding) log.warn(line);
    },
    onChange() {
      const exit = child?.exit();
      if (exit === undefined || isEnding) return;
      last = undefined;
      change('failing', `Its process ended (${exit.signal ?? exit.code}), and is started again.`);
    },
    backoff: LIMITS.backoff,
  });

  const stop = async () => {
    isEnding = true;
    await supervised.stop();
  };
  return {
    ask: (id) => child?.send({ order: 'report', id }),
    isStarting: () => state === 'starting' && pulse.isStarting(),
    killIfDead() {
      if (isEnding || child?.exit() !== undefined || !pulse.isDead()) return;
      log.error({ dedicated: name, state }, 'does not answer or get on, and is killed');
      last = undefined;
      child?.kill();
    },
    report(id, ends) {
      const isFresh = last?.id === id;
      return {
        ...{ name, state, reason, since, restarts: Math.max(0, starts - 1) },
        pid: supervised.pid(),
        connections: last?.connections ?? 0,
        queueBytes: last?.queueBytes ?? 0,
        queueMs: last?.queueMs ?? 0,
        lagRecords: isFresh && ends !== undefined ? lagOf(last!, ends) : undefined,
      };
    },
    async end({ code, message }) {
      isEnding = true;
      if (state === 'ready' && child !== undefined) {
        child.send({ order: 'end', code, message });
        await Promise.race([child.exited, sleep(LIMITS.endMs)]);
      }
      await stop();
    },
    stop,
  };
}

function lagOf({ offsets }: Report, ends: ReadonlyMap<number, number>): number {
  const read = new Map(offsets);
  let lag = 0;
  for (const [partition, end] of ends) lag += Math.max(0, end - 1 - (read.get(partition) ?? -1));
  return lag;
}
