import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '../../lib/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { isDatabaseAway } from '../../lib/postgres/database.ts';
import type { Change } from './changes.ts';
import { FencedError, type WebhookStore } from './store.ts';

/** Changes of one transaction, and their bytes: it ends long before the time-out. */
const CHANGES_MAX = 500;
const BYTES_MAX = 4 * 1024 * 1024;

/** Writes changes for all lanes and drains together: one transaction at a time carries what came. */
export interface Keeper {
  /** @returns whether it was done; false = a dispatcher has some of its pills now, or we stop */
  apply(change: Change): Promise<boolean>;
  /** Whether the last transaction was kept. */
  isHealthy(): boolean;
  /** Gives what waits a last chance. */
  close(deadlineMs: number): Promise<void>;
}

interface Waiting {
  readonly change: Change;
  readonly done: (applied: boolean) => void;
}

/**
 * While the database is away it tries for ever: what waits is bounded by the pills that are not
 * settled, and the log is not read on.
 */
export function createKeeper(
  store: Pick<WebhookStore, 'apply'>,
  parts: {
    readonly log: Log;
    onFenced(partitions: readonly number[]): void;
    onFatal(error: Error): void;
  },
): Keeper {
  const queue: Waiting[] = [];
  const closing = new AbortController();
  let working: Promise<void> | undefined;
  let healthy = true;

  const write = async (batch: readonly Waiting[]): Promise<void> => {
    let left = batch;
    for (let attempts = 0; left.length > 0; attempts += 1) {
      try {
        await store.apply(left.map(({ change }) => change));
        healthy = true;
        for (const { done } of left) done(true);
        return;
      } catch (error) {
        if (error instanceof FencedError) {
          parts.onFenced(error.partitions);
          const isLost = ({ change }: Waiting) => isOf(change, error.partitions);
          for (const { done } of left.filter(isLost)) done(false);
          left = left.filter((waiting) => !isLost(waiting));
          continue;
        }
        healthy = false;
        if (!isDatabaseAway(error) && !isPassing(error)) parts.onFatal(error as Error);
        if (closing.signal.aborted) break;
        parts.log.warn({ err: error, attempts }, 'messages cannot be kept; waiting');
        const waitMs = 50 + backoffMs(attempts, { firstMs: 100, maxMs: 2_000 });
        await sleep(waitMs, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
    for (const { done } of left) done(false);
  };

  const work = async () => {
    // What comes within the same turn leaves together.
    await Promise.resolve();
    while (queue.length > 0) await write(takeBatch(queue));
    working = undefined;
  };
  return {
    apply: (change) =>
      new Promise((resolve) => {
        queue.push({ change, done: resolve });
        working ??= work();
      }),
    isHealthy: () => healthy,
    async close(deadlineMs) {
      const late = setTimeout(() => closing.abort(), deadlineMs);
      await working;
      clearTimeout(late);
      closing.abort();
    },
  };
}

/** Serialisation, a deadlock, or a row that went in between: the same again may well work. */
function isPassing(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^(?:40...|23503)$/.test(code);
}

function isOf(change: Change, partitions: readonly number[]): boolean {
  return (
    change.kind === 'keep' &&
    change.kept.joined.some(({ partition }) => partitions.includes(partition))
  );
}

function takeBatch(queue: Waiting[]): Waiting[] {
  let bytes = 0;
  let count = 0;
  for (const { change } of queue) {
    if (change.kind === 'keep') bytes += change.kept.message.body.length;
    if (count > 0 && (count >= CHANGES_MAX || bytes > BYTES_MAX)) break;
    count += 1;
  }
  return queue.splice(0, count);
}
