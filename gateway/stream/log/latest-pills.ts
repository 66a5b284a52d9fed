import type { EffectivePill } from '../../../domain/order/judge.ts';
import type { Pill } from '../../../schemas/pill.ts';
import { formatPosition } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** A symbol's newest pill. Immutable: a queued snapshot keeps the rows that it started with. */
export interface LatestPill {
  readonly partition: number;
  readonly offset: number;
  /** Offset of the last live pill with effect, late ones included: `prev` of the next live pill. */
  readonly lastOffset: number | null;
  readonly prevOffset: number | null;
  readonly backfill: boolean;
  readonly receivedAt: Micros;
  readonly pill: Pill;
}

export type LatestPills = ReturnType<typeof createLatestPills>;

/**
 * Creates the table of the newest pill of each symbol (at most symbols_max), and of the position
 * read so far.
 * @param epoch epoch of the log, which positions begin with
 */
export function createLatestPills(epoch: string) {
  const rows = new Map<string, LatestPill>();
  const offsets = new Map<number, number>();
  let positionText: string | undefined;

  return {
    epoch,
    offsets: offsets as ReadonlyMap<number, number>,
    seed(row: LatestPill) {
      rows.set(row.pill.symbol, row);
    },
    /** Takes a pill with effect. A late pill never replaces the newest, but updates `lastOffset`. */
    apply(pill: EffectivePill) {
      const { symbol, partition, offset, late, backfill, received_at: receivedAt } = pill;
      const { prev: prevOffset, last: lastOffset } = pill;
      const known = rows.get(symbol);
      const row = { partition, offset, lastOffset, prevOffset, backfill, receivedAt, pill };
      rows.set(symbol, late && known !== undefined ? { ...known, lastOffset } : row);
    },
    /** Everything in the partition up to and including this offset has been handed over. */
    advance(partition: number, offset: number) {
      const known = offsets.get(partition);
      if (known !== undefined && known >= offset) return;
      offsets.set(partition, offset);
      positionText = undefined;
    },
    get: (symbol: string) => rows.get(symbol),
    /** Rows in the order in which their symbols were first seen, test symbols included. */
    rows: (): Iterable<LatestPill> => rows.values(),
    /** The position as text. */
    position(): string {
      positionText ??= formatPosition(epoch, offsets);
      return positionText;
    },
  };
}
