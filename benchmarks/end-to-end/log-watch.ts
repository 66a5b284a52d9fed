import { randomUUID } from 'node:crypto';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { createTopics, deleteTopics } from '../../lib/kafka/topics.ts';
import { silentLog } from '../../lib/log.ts';
import { monotonicMicros } from '../clock.ts';
import { createTally, type Watch } from './tally.ts';

/** Reads a topic of its own, whose records are ids: what the log alone takes on this machine. */
export async function openLogWatch(kafka: string): Promise<Watch & { readonly topic: string }> {
  const client = createKafkaClient(kafka.split(','), 'bench-log', silentLog);
  const topic = `bench.log.${randomUUID()}`;
  await createTopics(client, [{ name: topic, partitions: 1, config: {} }]);
  const tally = createTally(1);
  const tail = await openTail({
    client,
    topic,
    groupPrefix: topic,
    from: new Map(),
    onRecords(_partition, records) {
      const now = monotonicMicros();
      for (const { value } of records) tally.take(0, value?.toString('utf8') ?? '', now);
    },
    onFatal: (error) => tally.remark(error.message),
  });
  return {
    topic,
    begin: tally.begin,
    end: tally.end,
    async close() {
      await tail.close();
      await deleteTopics(client, [topic]);
    },
  };
}
