import type { SchemaName } from './avro.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Unlimited retention. */
export const FOREVER = -1;
/**
 * An index entry for each batch: the broker otherwise reads 4 KiB of small batches to find an offset
 * (7,500 reads a second at 1,000 pills/s, 1,450 with it, and 8 % less CPU a request, measured).
 */
const INDEXED = { 'index.interval.bytes': '1' };

export interface TopicSpec {
  /** Name without the namespace prefix. */
  readonly name: string;
  /** Content of the record's key. */
  readonly key: string;
  /** Schema of the value, registered as `<topic>-value`. */
  readonly value: SchemaName;
  /** `pills` follows the count in the topic settings; a number is fixed. */
  readonly partitions: 'pills' | number;
  /** How long records are kept, in ms; a compacted topic keeps the last of each key. */
  readonly retentionMs: number;
  readonly compacted: boolean;
  readonly writers: readonly string[];
  readonly readers: readonly string[];
  /** Further topic settings of the broker. */
  readonly config: Readonly<Record<string, string>>;
}

/** All topics; no other module names one. */
export const TOPICS = {
  pills: {
    name: 'pills.v1',
    key: 'symbol',
    value: 'pill',
    partitions: 'pills',
    retentionMs: FOREVER,
    compacted: false,
    writers: ['ingest', 'direct producers'],
    readers: ['latest', 'analytics', 'webhooks', 'destinations', 'stream', 'dedicated'],
    config: {
      ...INDEXED,
      // Lateness and backfill must be decided by a single clock: the broker's.
      'message.timestamp.type': 'LogAppendTime',
      // A direct producer may compress with a codec that the consumers do not support.
      'compression.type': 'uncompressed',
    },
  },
  latest: {
    name: 'pills.latest.v1',
    key: 'symbol',
    value: 'latest-pill',
    partitions: 'pills',
    retentionMs: FOREVER,
    compacted: true,
    writers: ['latest'],
    readers: ['latest', 'api', 'stream', 'ingest'],
    // Small segments and an eager cleaner, because a starting process reads the whole topic.
    config: {
      ...INDEXED,
      'segment.bytes': String(16 * 1024 * 1024),
      'segment.ms': String(HOUR_MS),
      'min.cleanable.dirty.ratio': '0.2',
    },
  },
  rejected: {
    name: 'pills.rejected.v1',
    key: 'origin, "<epoch>:<partition>-<offset>"',
    value: 'rejected-record',
    partitions: 1,
    retentionMs: 30 * DAY_MS,
    compacted: false,
    writers: ['latest'],
    readers: ['analytics', 'operators'],
    config: {},
  },
  refused: {
    name: 'pills.refused.v1',
    key: 'the run of an ingest process',
    value: 'refusal-report',
    partitions: 1,
    retentionMs: 30 * DAY_MS,
    compacted: false,
    writers: ['ingest'],
    readers: ['analytics'],
    config: {},
  },
  meta: {
    name: 'pillole.meta.v1',
    key: '"pills.v1"',
    value: 'topic-settings',
    partitions: 1,
    retentionMs: FOREVER,
    compacted: true,
    writers: ['provision'],
    readers: ['every process'],
    config: {},
  },
} as const satisfies Readonly<Record<string, TopicSpec>>;

export type TopicId = keyof typeof TOPICS;

/** Full name of a topic: `<PILLOLE_NAMESPACE>.<name>`, or the name alone without a namespace. */
export function topicName(namespace: string, topic: TopicId): string {
  return prefixed(namespace, TOPICS[topic].name);
}

/** Subject of a topic's values in the registry. */
export function subjectName(namespace: string, topic: TopicId): string {
  return `${topicName(namespace, topic)}-value`;
}

/** Full name of a consumer group. */
export function groupName(namespace: string, processor: string): string {
  return prefixed(namespace, `pillole.${processor}`);
}

function prefixed(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}.${name}`;
}

/**
 * Bound of distinct symbols in one partition. A consumer must decide from its partition alone, so
 * the total bound is divided, plus a quarter for the unevenness of the hash.
 */
export function symbolsPerPartitionMax(symbolsMax: number, partitions: number): number {
  return partitions === 1 ? symbolsMax : Math.ceil((symbolsMax / partitions) * 1.25);
}
