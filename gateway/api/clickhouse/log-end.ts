import { setTimeout as sleep } from 'node:timers/promises';
import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import { type LogEnds, openLogEnds } from '../../../lib/kafka/log-ends.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { LOG_END_KEPT_MS, LOG_END_WAIT_MS } from '../limits.ts';
import { cachedFor } from './cached-for.ts';

/** The second try finds an end that is younger than the question. */
const END_TRIES_MAX = 3;

/** End of the pills log at a moment. It stays valid: later records have higher offsets. */
export interface LogEnd {
  /** Last offset of each partition; −1 where no record was ever written. */
  readonly offsets: Offsets;
  /** The moment just before they were read: all records appended before it are included. */
  readonly at: Micros;
  /**
   * True: the moment is at most 0.25 s ago; false: the log does not answer, and this is its last
   * known end.
   */
  readonly isCurrent: boolean;
}

/** Returns the end of the log within 0.5 s. @returns undefined when the end was never known */
export type ReadLogEnd = () => Promise<LogEnd | undefined>;

/**
 * Compares a position with the end of the log at this moment.
 * @returns the end, if it is before the position; undefined: it is not, or the log does not answer
 */
export async function endBefore(
  position: Offsets,
  readLogEnd: ReadLogEnd,
): Promise<Offsets | undefined> {
  const askedAt = nowMicros();
  for (let tries = 0; tries < END_TRIES_MAX; tries += 1) {
    const end = await readLogEnd();
    const isReached = [...position].every(([at, offset]) => offset <= (end?.offsets.get(at) ?? -1));
    if (end === undefined || !end.isCurrent || isReached) return undefined;
    // An end that was read before the question may be older than the position.
    if (end.at >= askedAt) return end.offsets;
    await sleep(LOG_END_KEPT_MS);
  }
  return undefined;
}

/** Opens one instance for all callers that check whether a store holds the whole log. */
export function openLogEnd(client: KafkaClient, topic: string, life: Lifecycle): ReadLogEnd {
  const ends = openLogEnds(client, topic);
  life.onStop('end of the log', ends.close);
  return createLogEnd(ends);
}

/** @param ends called by one caller at a time */
export function createLogEnd(ends: Pick<LogEnds, 'ask'>): ReadLogEnd {
  let last: Omit<LogEnd, 'isCurrent'> | undefined;
  const ask = cachedFor(LOG_END_KEPT_MS, async () => {
    const at = nowMicros();
    const next = await ends.ask();
    if (next === undefined) return false;
    last = {
      at,
      offsets: new Map([...next].map(([partition, offset]) => [partition, offset - 1])),
    };
    return true;
  });
  return async () => {
    const over = new AbortController();
    const waited = sleep(LOG_END_WAIT_MS, false, { signal: over.signal }).catch(() => false);
    const isCurrent = await Promise.race([ask(), waited]);
    over.abort();
    return last === undefined ? undefined : { ...last, isCurrent };
  };
}
