import { setTimeout as sleep } from 'node:timers/promises';
import { nowMicros } from '../../lib/clock.ts';
import type { KafkaClient } from '../../lib/kafka/client.ts';
import { type LogEnds, openLogEnds } from '../../lib/kafka/log-ends.ts';
import type { Life } from '../../lib/run.ts';
import type { Offsets } from '../../schemas/position.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { kept } from './clickhouse/kept.ts';
import { LOG_END_KEPT_MS, LOG_END_WAIT_MS } from './limits.ts';

/** Where the log of pills ended at a moment. It stays true: later records have higher offsets. */
export interface LogEnd {
  /** Last offset of each partition; −1 where nothing was ever written. */
  readonly offsets: Offsets;
  /** The moment just before they were read: what was appended by then is not behind them. */
  readonly at: Micros;
  /** The moment is at most 0.25 s ago; false: the log does not answer, this is what it said last. */
  readonly isCurrent: boolean;
}

/** Tells the end of the log after 0.5 s at the most. @returns undefined when it was never told */
export type AskLogEnd = () => Promise<LogEnd | undefined>;

/** One for all who must know whether something holds all of the log. */
export function openLogEnd(client: KafkaClient, topic: string, life: Life): AskLogEnd {
  const ends = openLogEnds(client, topic);
  life.onStop('end of the log', ends.close);
  return createLogEnd(ends);
}

/** @param ends asked by one at a time */
export function createLogEnd(ends: Pick<LogEnds, 'ask'>): AskLogEnd {
  let last: Omit<LogEnd, 'isCurrent'> | undefined;
  const ask = kept(LOG_END_KEPT_MS, async () => {
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
