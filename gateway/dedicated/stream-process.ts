import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  isProcessReport,
  type ProcessReport,
  type SupervisorCommand,
} from '../../domain/dedicated/channel.ts';
import type { Denial, DesiredStream } from '../../domain/dedicated/desired-streams.ts';
import type { StateReport } from '../../domain/dedicated/stream-states.ts';
import { type Child, type ChildExit, startChild } from '../../lib/child-process/child.ts';
import { NODE_ARGUMENTS } from '../../lib/child-process/node-arguments.ts';
import { setPriority } from '../../lib/child-process/priority.ts';
import { supervise } from '../../lib/child-process/supervise.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import type { Log } from '../../lib/log/log.ts';
import type { DedicatedConfig } from './config.ts';
import { LIMITS } from './limits.ts';
import { createLiveness, type LivenessLimits } from './liveness.ts';

const ENTRY = path.join(packageRoot, 'dist', 'gateway', 'stream', 'main.js');

/** The process of one dedicated socket, kept alive. */
export type StreamProcess = Awaited<ReturnType<typeof runStreamProcess>>;

/**
 * Starts a process, and restarts it on the same port whenever it exits.
 * @param program another entry file and other limits, for tests
 * @throws when the process cannot be started at all
 */
export async function runStreamProcess(
  stream: DesiredStream,
  config: DedicatedConfig,
  log: Log,
  onChange: () => void,
  program: { readonly entry?: string; readonly limits?: LivenessLimits } = {},
) {
  const { name } = stream;
  const state = createProcessState(program.limits ?? LIMITS, onChange);
  let child: Child | undefined;
  let isEnding = false;
  let onReady: () => void = () => undefined;

  const send = (command: SupervisorCommand) => child?.send(command);
  const onMessage = (message: unknown) => {
    if (isProcessReport(message) && state.onReport(message)) onReady();
  };
  const supervised = await supervise({
    name,
    async start() {
      state.onStarting();
      child = await startProgram(stream, config, program.entry ?? ENTRY, log, onMessage);
      state.onStarted();
      return child;
    },
    ready: (started) =>
      new Promise((resolve, reject) => {
        onReady = resolve;
        void started.exited.then(() => reject(new Error('the process exited')));
      }),
    say: (line) => isEnding || log.warn(line),
    onChange() {
      const exit = child?.exit();
      if (exit !== undefined && !isEnding) state.onExit(exit);
    },
    backoff: LIMITS.backoff,
  });
  /** Drains the sockets, and ends the process for good. */
  const stop = async () => {
    isEnding = true;
    await supervised.stop();
  };
  return {
    /** Requests a report, which `report` returns a little later. */
    requestReport: (id: number) => send({ command: 'report', id }),
    isStarting: state.isStarting,
    /** Kills the process when it hangs, serving or not; it is restarted then. */
    killIfDead() {
      if (isEnding || child?.exit() !== undefined || !state.isDead()) return;
      log.error({ dedicated: name, state: state.current() }, 'the process hangs and is killed');
      state.onKill();
      child?.kill();
    },
    /** @param ends of the log when report `id` was requested */
    report: (id: number, ends: ReadonlyMap<number, number> | undefined): StateReport => {
      return { name, pid: supervised.pid(), ...state.report(id, ends) };
    },
    /** Closes the sockets with the reason, and ends the process for good. */
    async end({ code, message }: Denial) {
      isEnding = true;
      if (state.current() === 'ready') {
        send({ command: 'end', code, message });
        await Promise.race([child?.exited, sleep(LIMITS.endMs)]);
      }
      await stop();
    },
    stop,
  };
}

/** State of the process as its supervisor reports it; `onChange` is called when it changes. */
function createProcessState(limits: LivenessLimits, onChange: () => void) {
  const liveness = createLiveness(limits, () => performance.now());
  const current = {
    state: 'starting' as StateReport['state'],
    reason: undefined as string | undefined,
    since: new Date(),
  };
  let starts = 0;
  let last: ProcessReport | undefined;
  const change = (state: StateReport['state'], reason?: string) => {
    const isNew = current.state !== state || current.reason !== reason;
    if (current.state !== state) current.since = new Date();
    current.state = state;
    current.reason = reason;
    if (isNew) onChange();
  };
  return {
    current: () => current.state,
    /** Whether the process is reading the log to its end and other starts must wait for it. */
    isStarting: () => current.state === 'starting' && liveness.isStarting(),
    isDead: liveness.isDead,
    onStarting() {
      starts += 1;
      last = undefined;
    },
    onStarted() {
      liveness.onStart();
      change('starting', 'The process is reading the log to its end.');
    },
    /** @returns whether the process is ready */
    onReport(report: ProcessReport): boolean {
      last = report;
      liveness.onReport(report);
      const { notReady } = report;
      if (notReady === undefined) change('ready');
      else change('starting', `Not ready: ${notReady}.`);
      return notReady === undefined;
    },
    onExit({ signal, code }: ChildExit) {
      last = undefined;
      change('failing', `The process exited (${signal ?? code}) and is being restarted.`);
    },
    onKill() {
      last = undefined;
    },
    report: (id: number, ends: ReadonlyMap<number, number> | undefined) => ({
      ...current,
      restarts: Math.max(0, starts - 1),
      connections: last?.connections ?? 0,
      queueBytes: last?.queueBytes ?? 0,
      queueMs: last?.queueMs ?? 0,
      lagRecords: last?.id === id && ends !== undefined ? lagOf(last, ends) : undefined,
    }),
  };
}

async function startProgram(
  { name, accountId, port }: DesiredStream,
  config: DedicatedConfig,
  entry: string,
  log: Log,
  onMessage: (message: unknown) => void,
): Promise<Child> {
  const child = await startChild({
    name,
    command: process.execPath,
    args: [...NODE_ARGUMENTS, entry],
    env: {
      ...config.childEnv,
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
  const nice = setPriority(child.pid, config.nice) ? config.nice : 'as the supervisor';
  log.info({ dedicated: name, pid: child.pid, port, nice }, 'the process was started');
  return child;
}

function lagOf({ offsets }: ProcessReport, ends: ReadonlyMap<number, number>): number {
  const read = new Map(offsets);
  let lag = 0;
  for (const [partition, end] of ends) lag += Math.max(0, end - 1 - (read.get(partition) ?? -1));
  return lag;
}
