import { setTimeout as sleep } from 'node:timers/promises';
import type { StateReport } from '../../lib/dedicated/states.ts';
import { writeStates } from '../../lib/dedicated/states.ts';
import { type Denial, pruneRemoved, readWanted, type Wanted } from '../../lib/dedicated/wanted.ts';
import type { LogEnds } from '../../lib/kafka/log-ends.ts';
import type { Log } from '../../lib/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { DedicatedConfig } from './config.ts';
import { LIMITS } from './limits.ts';
import { type One, runOne } from './one.ts';

export interface SupervisorOptions {
  readonly config: DedicatedConfig;
  readonly db: Database;
  readonly ends: LogEnds;
  readonly log: Log;
}

export interface Supervisor {
  /** Looks at the table now. */
  follow(): void;
  /** Why not all that is wanted is known yet. */
  notReady(): string | undefined;
  /** Ends all processes; their sockets are told to come back. */
  close(): Promise<void>;
}

const REMOVED: Denial = {
  code: 'dedicated_removed',
  message: 'This dedicated socket was removed, or its rotation is over. Use its successor.',
};

/**
 * Makes what runs follow the table: a process a row, none for a row that is gone or whose account
 * may not have it. While the table cannot be read all goes on as it is.
 */
export function openSupervisor({ config, db, ends, log }: SupervisorOptions): Supervisor {
  const running = new Map<string, One>();
  const busy = new Map<string, Promise<void>>();
  const denied = new Map<string, Stopped>();
  const told = new Map<string, { readonly text: string; readonly atMs: number }>();
  const closing = new AbortController();
  let wake = newWake();
  let isKnown = false;
  let failures = 0;
  let prunedAtMs = Number.NEGATIVE_INFINITY;

  /** One thing at a time for each name: what is ending is not started again meanwhile. */
  const attend = (name: string, work: () => Promise<void>) => {
    const done = work()
      .catch((error) => log.error({ err: error, dedicated: name }, 'could not be attended to'))
      .finally(() => {
        busy.delete(name);
        wake.now();
      });
    busy.set(name, done);
  };
  const endOne = (name: string, denial: Denial) =>
    attend(name, async () => {
      log.info({ dedicated: name, code: denial.code }, 'is ended');
      await running.get(name)?.end(denial);
      running.delete(name);
    });
  const startOne = (wanted: Wanted) =>
    attend(wanted.name, async () => {
      const one = await runOne(wanted, config, log, () => wake.now()).catch(async (error) => {
        // What cannot be started at all (no room, no folder) is not tried in a circle.
        await nap(LIMITS.startAgainMs, closing.signal);
        throw error;
      });
      running.set(wanted.name, one);
      if (closing.signal.aborted) await one.stop();
    });

  const follow = async () => {
    const wanted = new Map((await readWanted(db, Date.now())).map((one) => [one.name, one]));
    for (const name of denied.keys()) if (!wanted.get(name)?.denial) denied.delete(name);
    for (const { name, denial } of wanted.values()) {
      if (denial !== undefined && !denied.has(name))
        denied.set(name, { denial, since: new Date() });
    }
    for (const name of running.keys()) {
      const denial = wanted.has(name) ? wanted.get(name)!.denial : REMOVED;
      if (denial !== undefined && !busy.has(name)) endOne(name, denial);
    }
    let starting = [...running.values()].filter((one) => one.isStarting()).length;
    for (const one of wanted.values()) {
      const isDue = one.denial === undefined && !running.has(one.name) && !busy.has(one.name);
      if (!isDue || starting >= LIMITS.startingMax) continue;
      starting += 1;
      startOne(one);
    }
    isKnown = true;
    if (performance.now() - prunedAtMs > LIMITS.pruneMs) {
      prunedAtMs = performance.now();
      await pruneRemoved(db);
    }
  };

  const following = (async () => {
    while (!closing.signal.aborted) {
      wake = newWake();
      try {
        await follow();
        failures = 0;
      } catch (error) {
        failures += 1;
        if (failures === 1) log.warn({ err: error }, 'the table cannot be read; all goes on');
      }
      // Who is called a hundred times a second looks ten times: a call meanwhile is not forgotten.
      await nap(LIMITS.followDistanceMs, closing.signal);
      await nap(LIMITS.followMs, AbortSignal.any([closing.signal, wake.called]));
    }
  })();

  /** Writes what has changed, and the rest now and then. */
  const tell = async (reports: readonly StateReport[]) => {
    const now = performance.now();
    const fresh = reports.filter((report) => {
      const before = told.get(report.name);
      const isOld = before === undefined || now - before.atMs >= LIMITS.retellMs;
      return isOld || before.text !== textOf(report);
    });
    await writeStates(db, fresh);
    for (const report of fresh) told.set(report.name, { text: textOf(report), atMs: now });
    const names = new Set(reports.map((report) => report.name));
    for (const name of told.keys()) if (!names.has(name)) told.delete(name);
  };

  const reporting = (async () => {
    for (let id = 1; !closing.signal.aborted; id += 1) {
      const at = await ends.ask();
      for (const one of running.values()) one.ask(id);
      await nap(LIMITS.answerMs, closing.signal);
      for (const one of running.values()) one.killIfDead();
      const reports = [
        ...[...running].flatMap(([name, one]) => (denied.has(name) ? [] : [one.report(id, at)])),
        ...[...denied].map(([name, stopped]) => stoppedReport(name, stopped)),
      ];
      await tell(reports).catch(() => undefined); // read again, and told, in a second
      await nap(LIMITS.reportMs - LIMITS.answerMs, closing.signal);
    }
  })();

  return {
    follow: () => wake.now(),
    notReady: () => (isKnown ? undefined : 'the table of dedicated sockets was not read yet'),
    async close() {
      closing.abort();
      wake.now();
      await Promise.all([...running.values()].map((one) => one.stop()));
      await Promise.all([following, reporting, ...busy.values()]);
    },
  };
}

/** A socket that its account may not have now. */
interface Stopped {
  readonly denial: Denial;
  readonly since: Date;
}

function stoppedReport(name: string, { denial, since }: Stopped): StateReport {
  return {
    ...{ name, state: 'stopped', reason: denial.message, pid: undefined, since },
    ...{ restarts: 0, connections: 0, queueBytes: 0, queueMs: 0, lagRecords: undefined },
  };
}

function textOf(report: StateReport): string {
  return JSON.stringify(report);
}

function nap(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}

function newWake() {
  const called = new AbortController();
  return { now: () => called.abort(), called: called.signal };
}
