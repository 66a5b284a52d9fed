import type { Micros } from '../../schemas/timestamp.ts';

/** One record of the log, as a consumer receives it. */
export interface LogRecord {
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** The record's timestamp; the broker's append time where the topic says so. */
  readonly appendedAt: Micros;
}

/** One record for the log. */
export interface OutRecord {
  readonly topic: string;
  readonly partition: number;
  readonly key: string;
  readonly value: Buffer;
}

/** Position of an acknowledged record. */
export interface Ack {
  readonly partition: number;
  readonly offset: number;
  /** The broker's append time; -1 where the topic keeps the producer's. */
  readonly appendedAt: Micros;
}
