import { PRODUCER_LIMITS, type ProducerLimits } from '../../lib/kafka/producer.ts';
import type { HttpLimits } from '../http/server.ts';

/** Bounds of the HTTP side. */
export const HTTP_LIMITS: HttpLimits = {
  connectionsMax: 4_096,
  headerBytesMax: 16 * 1024,
  headersMax: 64,
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  timeoutCheckMs: 500,
  connectionTimeoutMs: 15_000,
  // Above the 60 s after which common load balancers drop an idle connection themselves.
  keepAliveMs: 65_000,
};

/** Bounds of what one request may hold, and of all requests together. */
export const INGEST_LIMITS = {
  pillBytesMax: 16 * 1024,
  batchBytesMax: 1024 * 1024,
  batchRowsMax: 1_000,
  /** Nesting of a body: a batch is an array of flat objects. */
  jsonDepthMax: 16,
  /** Faults told of one pill, and of one row of a batch. */
  faultsToldMax: 32,
  rowFaultsToldMax: 8,
  /** Requests that are being read or wait for the log; over it `overloaded`. */
  requestsMax: 10_000,
  /** Bytes of their bodies, as announced; chunked ones count with their limit. */
  bodyBytesMax: 64 * 1024 * 1024,
  /** Acknowledged pills that are remembered: between half of this and all of it. */
  identitiesMax: 200_000,
  /** From the arrival of a whole request to its 503; 2 s are promised, also on a busy machine. */
  answerMs: 1_800,
  /** At a stop: what is in flight is answered within this, then connections are cut. */
  drainMs: 2_500,
  /** The log counts as away after this long without an acknowledgement that was waited for. */
  unhealthyAfterMs: 2_000,
  credentialsCheckMs: 1_000,
} as const;

export const INGEST_PRODUCER_LIMITS: ProducerLimits = {
  ...PRODUCER_LIMITS,
  deadlineMs: INGEST_LIMITS.answerMs,
};
