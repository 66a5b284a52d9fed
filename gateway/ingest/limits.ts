import { PRODUCER_LIMITS, type ProducerLimits } from '../../lib/kafka/producer.ts';
import { PILL_BOUNDS } from '../http/ingest-document.ts';
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

/** Bounds of one request, and of all requests together. */
export const INGEST_LIMITS = {
  ...PILL_BOUNDS,
  /** Nesting of a body: a batch is an array of flat objects. */
  jsonDepthMax: 16,
  /** Faults reported of one pill, and of one row of a batch. */
  faultsMax: 32,
  rowFaultsMax: 8,
  /** Requests that are being read or wait for the log; beyond that, `overloaded`. */
  requestsMax: 10_000,
  /** Bytes of their bodies as announced; a chunked body counts with its limit. */
  bodyBytesMax: 64 * 1024 * 1024,
  /** Acknowledged pills that are remembered: between half of this and this. */
  identitiesMax: 200_000,
  /** From the arrival of a complete request to its 503; 2 s are promised, even under load. */
  answerMs: 1_800,
  /** At a stop, requests in flight have this long to be answered; then connections are cut. */
  drainMs: 2_500,
  /** The log counts as unavailable after this long without an acknowledgement. */
  unhealthyAfterMs: 2_000,
  /** Refused credentials of one address are logged once in this time. */
  refusalLogMs: 60_000,
} as const;

export const INGEST_PRODUCER_LIMITS: ProducerLimits = {
  ...PRODUCER_LIMITS,
  deadlineMs: INGEST_LIMITS.answerMs,
};
