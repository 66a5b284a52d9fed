import type { KafkaClient } from '../../lib/kafka/client.ts';
import { fetchOldest } from '../../lib/kafka/oldest.ts';
import type { Life } from '../../lib/run.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { OLDEST_REFRESH_MS } from './limits.ts';

/**
 * Keeps the append time of the oldest record that the log holds. It moves only as retention cuts
 * the log, or when the first pill comes, so it is looked up now and then.
 * @returns what was found last; undefined while the log is empty or was not read yet.
 */
export function watchOldest(
  client: KafkaClient,
  topic: string,
  life: Life,
): () => Micros | undefined {
  let oldest: Micros | undefined;
  let looking = false;
  const look = async () => {
    if (looking) return;
    looking = true;
    try {
      oldest = await fetchOldest(client, topic);
    } catch (error) {
      life.log.debug({ err: error }, 'the oldest pill is not known');
    }
    looking = false;
  };
  const timer = setInterval(() => void look(), OLDEST_REFRESH_MS);
  life.onStop('oldest pill', () => clearInterval(timer));
  void look();
  return () => oldest;
}
