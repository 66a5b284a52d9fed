import { setTimeout as sleep } from 'node:timers/promises';
import { pruneRemoved, readDesiredStreams } from '../../domain/dedicated/desired-streams.ts';
import type { LogEnds } from '../../lib/kafka/log-ends.ts';
import type { Log } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { DedicatedConfig } from './config.ts';
import { createFleet } from './fleet.ts';
import { LIMITS } from './limits.ts';
import { createStateWriter } from './state-writer.ts';

/**
 * Keeps the running processes in line with the table: one process per row, none for a removed row
 * or an account without the right. While the table cannot be read, all processes keep running.
 */
export function openSupervisor(deps: {
  readonly config: DedicatedConfig;
  readonly db: Database;
  readonly ends: LogEnds;
  readonly log: Log;
}) {
  const { db, ends, log } = deps;
  const closing = new AbortController();
  let wake = new AbortController();
  let isKnown = false;
  let failures = 0;
  let prunedAtMs = Number.NEGATIVE_INFINITY;
  const follow = () => wake.abort();
  const fleet = createFleet(deps.config, log, follow);
  const writeStates = createStateWriter(db);
  const pause = (ms: number, signal: AbortSignal) =>
    sleep(ms, undefined, { signal }).catch(() => undefined);

  const applyTable = async () => {
    fleet.apply(await readDesiredStreams(db, Date.now()));
    isKnown = true;
    if (performance.now() - prunedAtMs <= LIMITS.pruneMs) return;
    prunedAtMs = performance.now();
    await pruneRemoved(db);
  };
  const following = (async () => {
    while (!closing.signal.aborted) {
      wake = new AbortController();
      try {
        await applyTable();
        failures = 0;
      } catch (error) {
        failures += 1;
        if (failures === 1) {
          log.warn({ err: error }, 'the table cannot be read; all processes keep running');
        }
      }
      // A hundred notifications a second cause ten readings; a call meanwhile is not lost.
      await pause(LIMITS.followDistanceMs, closing.signal);
      await pause(LIMITS.followMs, AbortSignal.any([closing.signal, wake.signal]));
    }
  })();
  const reporting = (async () => {
    for (let id = 1; !closing.signal.aborted; id += 1) {
      const logEnds = await ends.ask();
      fleet.requestReports(id);
      await pause(LIMITS.answerMs, closing.signal);
      fleet.killDead();
      // After a failure, the states are collected and written again in a second.
      await writeStates(fleet.reports(id, logEnds)).catch(() => undefined);
      await pause(LIMITS.reportMs - LIMITS.answerMs, closing.signal);
    }
  })();

  return {
    /** Reads the table as soon as allowed. */
    follow,
    /** The reason why the desired streams are not known yet; undefined when they are. */
    notReady: () => (isKnown ? undefined : 'the table of dedicated sockets was not read yet'),
    /** Stops all processes; clients of their sockets are asked to reconnect. */
    async close() {
      closing.abort();
      follow();
      await fleet.close();
      await Promise.all([following, reporting]);
    },
  };
}
