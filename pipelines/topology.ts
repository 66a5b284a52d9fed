import type { TopicId } from '../schemas/topic-catalogue.ts';

/**
 * The map of the pipeline. Processors meet at topics and never call each other.
 */
export const TOPOLOGY = {
  latest: {
    process: 'latest',
    input: ['pills'],
    outputs: ['rejected', 'latest'],
    store: 'pills.latest.v1, folded in memory; its processed_offset is the position',
    recovery: 'reads its own output to the end, then the input from there; writes are idempotent',
  },
  analytics: {
    process: 'analytics',
    input: ['pills'],
    outputs: [],
    store: 'table pills in ClickHouse; its highest offset per partition is the position',
    recovery: 'asks the table for its position, then reads the input from there',
  },
  rejections: {
    process: 'analytics',
    input: ['rejected', 'refused'],
    outputs: [],
    store: 'tables rejected, refusal_counts and outcomes_progress in ClickHouse',
    recovery: 'asks the table of progress for its position, then reads the input from there',
  },
  webhooks: {
    process: 'webhooks',
    input: ['pills'],
    outputs: [],
    store: 'webhook_positions and webhook_deliveries in PostgreSQL',
    recovery:
      'takes its partitions over in PostgreSQL, judges from the stored state, continues at the position',
  },
  destinations: {
    process: 'destinations',
    input: ['pills'],
    outputs: [],
    store: 'destination_positions in PostgreSQL, one row for each destination and partition',
    recovery:
      'takes destinations over by lease, judges from the stored state, repeats the planned piece',
  },
} as const satisfies Readonly<
  Record<
    string,
    {
      /** The process that runs it. */
      readonly process: string;
      readonly input: readonly TopicId[];
      readonly outputs: readonly TopicId[];
      /** Where state and position are stored; the Kafka commit only shows the lag. */
      readonly store: string;
      /** The steps of a restart after a crash at any moment. */
      readonly recovery: string;
    }
  >
>;
