import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from './log.ts';

/** Something that is done again and again. */
export interface Repetition {
  /** Begins no further run, and waits for the one that is on its way. */
  close(): Promise<void>;
}

/**
 * Does something again and again, first after one interval: each run begins an interval after the
 * one before has ended, so that two never overlap. A run that fails is logged, and the next one
 * does its work.
 */
export function repeat({
  name,
  everyMs,
  firstMs = everyMs,
  jitter = 0,
  log,
  run,
}: {
  /** As the log names it, e.g. `renewals`. */
  readonly name: string;
  readonly everyMs: number;
  readonly firstMs?: number;
  /** Share by which an interval is longer or shorter: processes started together drift apart. */
  readonly jitter?: number;
  readonly log: Log;
  /** @param signal aborted at the close: a long run ends early */
  readonly run: (signal: AbortSignal) => Promise<unknown>;
}): Repetition {
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
        log.warn({ err: error }, `a run failed, the next one does its work: ${name}`);
      }
      waitMs = everyMs * (1 + jitter * (2 * Math.random() - 1));
    }
  };
  const working = work();
  return {
    close() {
      closing.abort();
      return working;
    },
  };
}
