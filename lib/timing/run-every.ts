import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../log/log.ts';

export type Repetition = ReturnType<typeof runEvery>;

/**
 * Runs a task periodically, first after one interval. Each run begins one interval after the end of
 * the previous one, so that runs never overlap. A failed run is logged; the next run does its work.
 */
export function runEvery({
  name,
  everyMs,
  firstMs = everyMs,
  jitter = 0,
  log,
  run,
}: {
  /** Name of the task in the log, e.g. `renewals`. */
  readonly name: string;
  readonly everyMs: number;
  readonly firstMs?: number;
  /** Random share added to or taken from each interval, so that processes drift apart. */
  readonly jitter?: number;
  readonly log: Log;
  /** @param signal aborted by `close`, so that a long run ends early */
  readonly run: (signal: AbortSignal) => Promise<unknown>;
}) {
  const closing = new AbortController();
  const { signal } = closing;
  const work = async () => {
    let waitMs = firstMs;
    for (;;) {
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await run(signal);
      } catch (error) {
        log.warn({ err: error }, `${name}: a run failed; the next run does its work`);
      }
      waitMs = everyMs * (1 + jitter * (2 * Math.random() - 1));
    }
  };
  const working = work();
  return {
    /** Starts no further run, and waits for the current one. */
    close(): Promise<void> {
      closing.abort();
      return working;
    },
  };
}
