import type { TopicId } from '../schemas/topics.ts';

/** One processor of the pipeline: what it reads, writes and keeps. */
export interface ProcessorSpec {
  readonly input: TopicId;
  readonly outputs: readonly TopicId[];
  /** Where its state and its position are kept; the Kafka commit only shows the lag. */
  readonly store: string;
  /** What a crash at any moment leaves to do. */
  readonly recovery: string;
}

/** The map of the pipeline. Processors meet at topics and never call each other. */
export const TOPOLOGY = {
  latest: {
    input: 'pills',
    outputs: ['rejected', 'latest'],
    store: 'pills.latest.v1, folded in memory; its processed_offset is the position',
    recovery: 'reads its own output to the end, then the input from there; writes are idempotent',
  },
  analytics: {
    input: 'pills',
    outputs: [],
    store: 'table pills in ClickHouse; its highest offset per partition is the position',
    recovery: 'asks the table for its position, then reads the input from there',
  },
  webhooks: {
    input: 'pills',
    outputs: [],
    store: 'webhook_positions and webhook_deliveries in PostgreSQL',
    recovery:
      'takes its partitions over in PostgreSQL, judges from the kept state, goes on at the position',
  },
} as const satisfies Readonly<Record<string, ProcessorSpec>>;

export type ProcessorName = keyof typeof TOPOLOGY;
