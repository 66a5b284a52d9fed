import type { LatestPill } from '../../schemas/avro.ts';
import type { SymbolState } from './judge.ts';
import { isNewer, orderTime } from './time.ts';

/** Order time of a latest pill. */
export function orderOf(pill: LatestPill): number {
  return orderTime(pill.timestamp, pill.received_at);
}

/** State of a symbol after its latest row, from which judging can continue. */
export function symbolStateOf(row: LatestPill): SymbolState {
  return { order: orderOf(row), offset: row.offset, lastLive: row.last_offset };
}

/**
 * Merges two records of one symbol: the newer pill by order, the higher of each offset. The merge is
 * commutative, associative and idempotent, so neither the order of writes nor a zombie writer can
 * undo progress. @returns `a` itself when `b` adds nothing
 */
export function foldLatest(a: LatestPill, b: LatestPill): LatestPill {
  const newer = isNewer(orderOf(b), b.offset, orderOf(a), a.offset) ? b : a;
  const last_offset = maxOf(a.last_offset, b.last_offset);
  const processed_offset = Math.max(a.processed_offset, b.processed_offset);
  if (newer === a && last_offset === a.last_offset && processed_offset === a.processed_offset) {
    return a;
  }
  return { ...newer, last_offset, processed_offset };
}

function maxOf(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}
