import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import { fetchOffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { PROGRESS_INTERVAL_MS, STALLED_AFTER_MS } from '../limits.ts';
import { watchValue } from '../watch-value.ts';

export interface LatestLag {
  /** `stalled`: pills wait and none was processed for 5 s. `unknown`: the log does not answer. */
  readonly state: 'up' | 'stalled' | 'unknown';
  /** Records of the pills topic that the view does not include yet. */
  readonly lag_records: number;
}

/** Watches whether the latest processor keeps up with the log, by the progress in its view. */
export function watchLatestLag(
  client: KafkaClient,
  topic: string,
  processed: () => ReadonlyMap<number, number>,
  life: Lifecycle,
): () => LatestLag {
  let waitingSince: number | undefined;
  let lastSum = -1;

  const read = async (): Promise<LatestLag> => {
    const bounds = await fetchOffsetBounds(client, topic);
    let lag = 0;
    let sum = 0;
    for (const [partition, { low, high }] of bounds) {
      const next = Math.max(low, (processed().get(partition) ?? -1) + 1);
      sum += next;
      lag += Math.max(0, high - next);
    }
    if (lag === 0 || sum !== lastSum) waitingSince = undefined;
    else waitingSince ??= performance.now();
    lastSum = sum;
    const waited = waitingSince === undefined ? 0 : performance.now() - waitingSince;
    return { state: waited > STALLED_AFTER_MS ? 'stalled' : 'up', lag_records: lag };
  };
  const unknown = (last: LatestLag): LatestLag => ({ ...last, state: 'unknown' });
  const initial = unknown({ state: 'unknown', lag_records: 0 });
  return watchValue(life, 'lag of the latest view', PROGRESS_INTERVAL_MS, initial, read, unknown);
}
