import { DELIVERY_LIMITS } from '../../lib/webhooks/deliveries.ts';

/** Bounds and paces of the dispatcher. */
export const LIMITS = {
  /** Above so many matching pills a second, an endpoint's pills are joined. */
  joinAbovePerS: 50,
  /** Pills that are joined wait so long for others. */
  joinLingerMs: 20,
  /** First attempts on their way to one endpoint; what comes meanwhile is joined. */
  inFlightMax: 8,
  /** Waiting so long for its first attempt, or for its answer, a pill is kept in PostgreSQL. */
  keepAfterMs: 1_000,
  /** A kept message whose attempt is under way: nobody else tries it for so long. */
  leaseS: 20,
  /** Pills, each counted for each endpoint, neither delivered nor kept; then the log is read later. */
  unsettledMax: 50_000,
  /** Messages that wait for one endpoint, and their bytes; what is more is told, not kept. */
  backlogMessagesMax: DELIVERY_LIMITS.waitingMax,
  backlogBytesMax: 64 * 1024 * 1024,
  /** Messages of one endpoint on their way when its backlog is drained. */
  drainConcurrency: 8,
  /** A drain gives its place to another endpoint's after so long, or so many messages. */
  drainSliceMs: 10_000,
  drainMessagesMax: 1_000,
  /** Endpoints that are drained side by side. */
  drainsMax: 40,
  /** Positions are written this often. */
  flushIntervalMs: 250,
  /** Pills that may be attempted by themselves before it is written again how far they go. */
  triedAhead: 1_000,
  snapshotIntervalMs: 60_000,
  /** Log lines of attempts that wait for ClickHouse, and their bytes; the oldest leave. */
  attemptLinesMax: 50_000,
  attemptBytesMax: 64 * 1024 * 1024,
  /** Messages of one endpoint that were given up; beyond, the oldest are deleted before 30 days. */
  settledMessagesMax: 10_000,
  /** Failures in a row that open the circuit breaker, and how long it rests then. */
  breakerFailures: 5,
  restFirstS: 10,
  restMaxS: 300,
} as const;
