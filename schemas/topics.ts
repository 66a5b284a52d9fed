import type { SchemaName } from './avro.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Retention without an end. */
export const FOR_EVER = -1;

export interface TopicSpec {
  /** Name without the namespace prefix. */
  readonly name: string;
  /** What the record's key is. */
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

/** Every topic there is; nobody names one elsewhere. */
export const TOPICS = {
  pills: {
    name: 'pills.v1',
    key: 'symbol',
    value: 'pill',
    partitions: 'pills',
    retentionMs: FOR_EVER,
    compacted: false,
    writers: ['ingest', 'direct producers'],
    readers: ['latest', 'analytics', 'webhooks', 'stream', 'dedicated'],
    config: {
      // Who decides lateness and backfill must read one clock, the broker's.
      'message.timestamp.type': 'LogAppendTime',
      // A direct producer may compress with a codec that a consumer of ours does not have.
      'compression.type': 'uncompressed',
    },
  },
  latest: {
    name: 'pills.latest.v1',
    key: 'symbol',
    value: 'latest-pill',
    partitions: 'pills',
    retentionMs: FOR_EVER,
    compacted: true,
    writers: ['latest'],
    readers: ['latest', 'api', 'stream', 'ingest'],
    // Small segments and an eager cleaner: a process that starts reads this topic to its end.
    config: {
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
    readers: ['operators'],
    config: {},
  },
  meta: {
    name: 'pillole.meta.v1',
    key: '"pills.v1"',
    value: 'topic-settings',
    partitions: 1,
    retentionMs: FOR_EVER,
    compacted: true,
    writers: ['provision'],
    readers: ['every process'],
    config: {},
  },
} as const satisfies Readonly<Record<string, TopicSpec>>;

export type TopicId = keyof typeof TOPICS;

/** Full name of a topic: `PILLOLE_NAMESPACE` goes before it with a point. */
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
 * the bound of all is divided, with a quarter on top for the unevenness of the hash.
 */
export function symbolsPerPartitionMax(symbolsMax: number, partitions: number): number {
  return partitions === 1 ? symbolsMax : Math.ceil((symbolsMax / partitions) * 1.25);
}
