import type { KafkaClient } from '../../lib/kafka/client.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import type { Life } from '../../lib/run.ts';
import { PROGRESS_INTERVAL_MS, STALLED_AFTER_MS } from './limits.ts';

export interface Progress {
  /** `stalled`: pills wait, and none was processed for 5 s. `unknown`: the log does not answer. */
  readonly state: 'up' | 'stalled' | 'unknown';
  /** Records of the pills topic that are not in the view yet. */
  readonly lag_records: number;
}

/** Watches whether the latest processor keeps up with the log, by what its view says of it. */
export function watchProgress(
  client: KafkaClient,
  topic: string,
  processed: () => ReadonlyMap<number, number>,
  life: Life,
): () => Progress {
  let progress: Progress = { state: 'unknown', lag_records: 0 };
  let waitingSince: number | undefined;
  let lastSum = -1;
  let looking = false;

  const look = async () => {
    if (looking) return;
    looking = true;
    try {
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
      progress = { state: waited > STALLED_AFTER_MS ? 'stalled' : 'up', lag_records: lag };
    } catch (error) {
      life.log.debug({ err: error }, 'the progress is not known');
      progress = { ...progress, state: 'unknown' };
    }
    looking = false;
  };
  const timer = setInterval(() => void look(), PROGRESS_INTERVAL_MS);
  life.onStop('progress', () => clearInterval(timer));
  void look();
  return () => progress;
}
