import { isTestSymbol } from '../../../schemas/pill.ts';
import { passesFilter } from '../../../schemas/pill-filter.ts';
import { publicPillText } from '../../../schemas/public-pill.ts';
import type { Limits } from '../limits.ts';
import type { LatestPill, LatestPills } from '../log/latest-pills.ts';
import { ALL_SYMBOLS, type Subscription } from '../protocol/subscription.ts';
import type { FrameSource } from '../wire/outbox.ts';

/**
 * Creates a snapshot as a source of bounded frames; the last frame has `last:true`.
 * @param backfill `prev` is null, because backfill pills lie between the live pills
 */
export function createSnapshot(
  id: string | undefined,
  rows: readonly LatestPill[],
  backfill: boolean,
  position: string,
  { frameOutBytesMax, heldRowBytes }: Limits,
): FrameSource {
  const head = `{"type":"snapshot",${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"pills":[`;
  const tail = (last: boolean) => `],"last":${last},"position":"${position}"}`;
  let at = 0;
  let ended = false;
  return {
    heldBytes: rows.length * heldRowBytes,
    next() {
      if (ended) return undefined;
      const bodies: string[] = [];
      // In bytes, because labels in other scripts take three bytes a character.
      let bytes = head.length + tail(false).length;
      while (at < rows.length) {
        const body = bodyOf(rows[at]!, backfill);
        bytes += Buffer.byteLength(body) + 1;
        if (bytes > frameOutBytesMax && bodies.length > 0) break;
        bodies.push(body);
        at += 1;
      }
      ended = at === rows.length;
      return Buffer.from(`${head}${bodies.join(',')}${tail(ended)}`);
    },
  };
}

function bodyOf(row: LatestPill, backfill: boolean): string {
  const { partition, offset, lastOffset: last, prevOffset, receivedAt: received_at } = row;
  const prev = backfill ? null : prevOffset;
  // Snapshots carry no `late`.
  const pill = { ...row.pill, partition, offset, received_at, late: false, backfill: row.backfill };
  return publicPillText(pill, { last, prev });
}

/**
 * Selects the rows that the subscription lets through. `*` leaves out test symbols and symbols that
 * the connection names, which have subscriptions of their own.
 */
export function chooseRows(
  latestPills: LatestPills,
  symbols: readonly string[],
  named: ReadonlyMap<string, Subscription>,
  subscription: Subscription,
): LatestPill[] {
  const matches = (row: LatestPill) =>
    (!row.backfill || subscription.backfill) &&
    (subscription.filter === undefined || passesFilter(subscription.filter, row.pill));
  const rows: LatestPill[] = [];
  for (const symbol of symbols) {
    if (symbol === ALL_SYMBOLS) {
      for (const row of latestPills.rows()) {
        const own = row.pill.symbol;
        if (!isTestSymbol(own) && !named.has(own) && matches(row)) rows.push(row);
      }
      continue;
    }
    const row = latestPills.get(symbol);
    if (row !== undefined && matches(row)) rows.push(row);
  }
  return rows;
}
