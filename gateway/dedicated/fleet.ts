import { setTimeout as sleep } from 'node:timers/promises';
import type { Denial, DesiredStream } from '../../domain/dedicated/desired-streams.ts';
import type { StateReport } from '../../domain/dedicated/stream-states.ts';
import type { Log } from '../../lib/log/log.ts';
import type { DedicatedConfig } from './config.ts';
import { LIMITS } from './limits.ts';
import { runStreamProcess, type StreamProcess } from './stream-process.ts';

const REMOVED: Denial = {
  code: 'dedicated_removed',
  message: 'This dedicated socket was removed, or its rotation is complete. Use its successor.',
};

type Denials = Map<string, { readonly denial: Denial; readonly since: Date }>;

/**
 * Creates the set of running processes, without any.
 * @param onChange called when a process has changed, or a start or end is complete
 */
export function createFleet(config: DedicatedConfig, log: Log, onChange: () => void) {
  const running = new Map<string, StreamProcess>();
  /** One operation at a time for each name: an ending stream is not started meanwhile. */
  const busy = new Map<string, Promise<void>>();
  const denied: Denials = new Map();
  const closing = new AbortController();

  const operate = (name: string, work: () => Promise<void>) => {
    const done = work()
      .catch((error) => log.error({ err: error, dedicated: name }, 'failed to start or end'))
      .finally(() => {
        busy.delete(name);
        onChange();
      });
    busy.set(name, done);
  };
  const end = (name: string, denial: Denial) =>
    operate(name, async () => {
      log.info({ dedicated: name, code: denial.code }, 'the process is being ended');
      await running.get(name)?.end(denial);
      running.delete(name);
    });
  const start = (stream: DesiredStream) =>
    operate(stream.name, async () => {
      const started = await runStreamProcess(stream, config, log, onChange).catch(async (error) => {
        // A process that cannot be started (no memory, no folder) is not retried in a tight loop.
        await sleep(LIMITS.startAgainMs, undefined, { signal: closing.signal }).catch(() => {});
        throw error;
      });
      running.set(stream.name, started);
      if (closing.signal.aborted) await started.stop();
    });

  return {
    /** Starts and ends processes as desired; returns at once. */
    apply(desired: readonly DesiredStream[]) {
      const byName = new Map(desired.map((stream) => [stream.name, stream]));
      updateDenials(denied, byName);
      for (const name of running.keys()) {
        const denial = byName.has(name) ? byName.get(name)!.denial : REMOVED;
        if (denial !== undefined && !busy.has(name)) end(name, denial);
      }
      let starting = [...running.values()].filter((process) => process.isStarting()).length;
      for (const stream of desired) {
        const { name, denial } = stream;
        const isDue = denial === undefined && !running.has(name) && !busy.has(name);
        if (!isDue || starting >= LIMITS.startingMax) continue;
        starting += 1;
        start(stream);
      }
    },
    requestReports(id: number) {
      for (const process of running.values()) process.requestReport(id);
    },
    killDead() {
      for (const process of running.values()) process.killIfDead();
    },
    /** States of all processes and of denied streams. @param ends of the log at report `id` */
    reports: (id: number, ends: ReadonlyMap<number, number> | undefined): StateReport[] => [
      ...[...running].filter(([name]) => !denied.has(name)).map(([, one]) => one.report(id, ends)),
      ...[...denied].map(([name, { denial, since }]) => stoppedReport(name, denial, since)),
    ],
    /** Stops all processes, and waits for starts and ends in progress. */
    async close() {
      closing.abort();
      await Promise.all([...running.values()].map((process) => process.stop()));
      await Promise.all(busy.values());
    },
  };
}

function updateDenials(denied: Denials, byName: ReadonlyMap<string, DesiredStream>): void {
  for (const name of denied.keys()) if (!byName.get(name)?.denial) denied.delete(name);
  for (const { name, denial } of byName.values()) {
    if (denial !== undefined && !denied.has(name)) denied.set(name, { denial, since: new Date() });
  }
}

function stoppedReport(name: string, denial: Denial, since: Date): StateReport {
  return {
    name,
    state: 'stopped',
    reason: denial.message,
    pid: undefined,
    since,
    restarts: 0,
    connections: 0,
    queueBytes: 0,
    queueMs: 0,
    lagRecords: undefined,
  };
}
