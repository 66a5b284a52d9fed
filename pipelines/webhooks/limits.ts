import { DELIVERY_LIMITS } from '../../domain/webhooks/deliveries/stored-messages.ts';

/** Bounds and intervals of the dispatcher. */
export const LIMITS = {
  /** Above this many matching pills a second, an endpoint's pills are joined. */
  joinAbovePerS: 50,
  /** Pills to be joined wait this long for others. */
  joinLingerMs: 20,
  /** First attempts in flight to one endpoint; pills that arrive meanwhile are joined. */
  inFlightMax: 8,
  /**
   * A pill that waits this long for its first attempt, or for its answer, is stored in PostgreSQL.
   */
  storeAfterMs: 1_000,
  /** While the attempt at a stored message is in flight, no other worker tries the message. */
  leaseS: 20,
  /** Pills, each counted per endpoint, neither delivered nor stored; above this, reading pauses. */
  unsettledMax: 50_000,
  /** Messages that wait for one endpoint, and their bytes; more are reported and not stored. */
  waitingMessagesMax: DELIVERY_LIMITS.waitingMax,
  waitingBytesMax: 64 * 1024 * 1024,
  /** Messages of one endpoint in flight while it is drained. */
  drainConcurrency: 8,
  /** After this time, or this many messages, a drain yields to the next endpoint. */
  drainSliceMs: 10_000,
  drainMessagesMax: 1_000,
  /** Endpoints that are drained side by side. */
  drainsMax: 40,
  /** Positions are written this often. */
  flushIntervalMs: 250,
  /** How far ahead single-pill attempts are allowed before the bound is written again. */
  triedAhead: 1_000,
  snapshotIntervalMs: 60_000,
  /**
   * Attempt-log lines that wait for ClickHouse, and their bytes; above either, the oldest are
   * dropped.
   */
  attemptLinesMax: 50_000,
  attemptBytesMax: 64 * 1024 * 1024,
  /** Given-up messages of one endpoint; above this, the oldest are deleted before their 30 days. */
  settledMessagesMax: 10_000,
  /** Failures in a row that open the circuit breaker, and how long it then rests. */
  breakerFailures: 5,
  restFirstS: 10,
  restMaxS: 300,
} as const;
