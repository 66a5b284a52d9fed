import type { KafkaClient } from './kafka-client.ts';
import type { Ack, OutRecord } from './log-record.ts';
import { type Cluster, openCluster } from './wire/cluster.ts';
import { BrokerError } from './wire/error-codes.ts';
import { type ProducedPartition, produceRequest } from './wire/produce-request.ts';
import type { WireRecord } from './wire/record-batch.ts';

export type ProduceLink = Awaited<ReturnType<typeof openProduceLink>>;

/**
 * Connects to the cluster, to send one batch of records after another. After an error of `send`,
 * which records are stored is unknown.
 * @param timeoutMs of one request
 */
export async function openProduceLink(client: KafkaClient, timeoutMs: number) {
  const cluster = openCluster(client, timeoutMs);
  await cluster.connect();
  return {
    /** Sends records with acks=all. @returns acks in the order of the records */
    async send(records: readonly OutRecord[]): Promise<Ack[]> {
      const sorted = sortByPartition(records);
      await cluster.follow(sorted.topics.keys());
      const requests = [...divideByLeader(cluster, sorted.topics)].map(([node, topics]) =>
        cluster.send(node, produceRequest(topics, timeoutMs), timeoutMs),
      );
      try {
        const answers = (await Promise.all(requests)).flat();
        for (const { topic, partition, errorCode } of answers) {
          if (errorCode !== 0) throw new BrokerError(errorCode, `${topic}/${partition}`);
        }
        return sorted.acksOf(answers);
      } catch (error) {
        // The leader may have moved; the next batch needs to know where.
        await cluster.refresh().catch(() => undefined);
        throw error;
      }
    },
    close: () => cluster.disconnect(),
  };
}

type ByTopic = Map<string, Map<number, WireRecord[]>>;

function sortByPartition(records: readonly OutRecord[]) {
  const topics: ByTopic = new Map();
  /** Place of each record within its partition's batch. */
  const places = records.map((record) => {
    const partitions = topics.get(record.topic) ?? new Map<number, WireRecord[]>();
    if (partitions.size === 0) topics.set(record.topic, partitions);
    const batch = partitions.get(record.partition);
    if (batch === undefined) partitions.set(record.partition, [record]);
    return batch === undefined ? 0 : batch.push(record) - 1;
  });
  return {
    topics,
    acksOf(answers: readonly ProducedPartition[]): Ack[] {
      const bases = new Map(answers.map((answer) => [keyOf(answer), answer]));
      return records.map((record, at) => {
        const base = bases.get(keyOf(record));
        if (base === undefined) throw new Error(`No answer for ${keyOf(record)}.`);
        const appendedAt = base.appendTimeMs < 0 ? -1 : base.appendTimeMs * 1000;
        const { partition } = record;
        return { partition, offset: base.baseOffset + places[at]!, appendedAt };
      });
    },
  };
}

const keyOf = ({ topic, partition }: { readonly topic: string; readonly partition: number }) =>
  `${topic}/${partition}`;

/** @throws Error while a partition has no leader */
function divideByLeader(cluster: Cluster, topics: ByTopic): Map<string, ByTopic> {
  const nodes = new Map<string, ByTopic>();
  for (const [topic, partitions] of topics) {
    for (const [partition, records] of partitions) {
      const node = cluster.leaderOf(topic, partition);
      if (node === undefined) throw new Error(`${topic}/${partition} has no leader.`);
      const own: ByTopic = nodes.get(node) ?? new Map();
      nodes.set(node, own);
      own.set(topic, (own.get(topic) ?? new Map()).set(partition, records));
    }
  }
  return nodes;
}
