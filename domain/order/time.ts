import type { PillRecord } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';

/** The gateway's receive time counts only within this distance of the broker's append time. */
export const RECEIVE_TRUST_MICROS = 5_000_000;

/**
 * Effective receive time of a record: constant, from the log alone. A gateway or direct producer with
 * a wrong clock cannot move a pill in time.
 */
export function effectiveReceivedAt(receivedAt: Micros | null, appendedAt: Micros): Micros {
  if (receivedAt === null) return appendedAt;
  return Math.abs(receivedAt - appendedAt) <= RECEIVE_TRUST_MICROS ? receivedAt : appendedAt;
}

/** Order time: min(timestamp, received), so that a fast clock cannot hold back newer pills. */
export function orderTime(timestamp: Micros, receivedAt: Micros): Micros {
  return Math.min(timestamp, receivedAt);
}

/** Whether a pill was received too long after its timestamp to be traded on. */
export function isBackfill(timestamp: Micros, receivedAt: Micros, backfillAgeMs: number): boolean {
  return receivedAt - timestamp > backfillAgeMs * 1000;
}

/** Whether (timeA, offsetA) follows (timeB, offsetB) in the order of one symbol. */
export function isNewer(timeA: Micros, offsetA: number, timeB: Micros, offsetB: number): boolean {
  return timeA > timeB || (timeA === timeB && offsetA > offsetB);
}

/** Effective receive time and order time of a record appended at `appendedAt`. */
export function timesOf(pill: PillRecord, appendedAt: Micros): { received: Micros; order: Micros } {
  const received = effectiveReceivedAt(pill.received_at, appendedAt);
  return { received, order: orderTime(pill.timestamp, received) };
}
