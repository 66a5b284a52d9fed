import type { EffectivePill } from '../../../lib/order/judge.ts';
import type { Pill } from '../../../schemas/pill.ts';
import { formatPosition } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** A symbol's newest pill. Immutable: a snapshot on its way keeps the rows it began with. */
export interface Row {
  readonly partition: number;
  readonly offset: number;
  /** Offset of the last live pill with effect, late ones too: the next live pill's `prev`. */
  readonly lastOffset: number | null;
  readonly prevOffset: number | null;
  readonly backfill: boolean;
  readonly receivedAt: Micros;
  readonly pill: Pill;
}

/** What was read so far: the newest pill of each symbol (bound: symbols_max), and the position. */
export interface Board {
  readonly epoch: string;
  seed(row: Row): void;
  /** Takes over a pill with effect. Late ones never replace; `last` follows the live ones. */
  apply(pill: EffectivePill): void;
  /** All of a partition up to and including this offset is handed over. */
  advance(partition: number, offset: number): void;
  get(symbol: string): Row | undefined;
  /** Rows in the order in which the symbols were first seen, test symbols included. */
  rows(): Iterable<Row>;
  readonly offsets: ReadonlyMap<number, number>;
  /** The position as text. */
  position(): string;
}

/** Creates an empty board. @param epoch the log's, which positions begin with */
export function createBoard(epoch: string): Board {
  const rows = new Map<string, Row>();
  const offsets = new Map<number, number>();
  let positionText: string | undefined;

  return {
    epoch,
    offsets,
    seed(row) {
      rows.set(row.pill.symbol, row);
    },
    apply(pill) {
      const { symbol, partition, offset, late, backfill, received_at: receivedAt } = pill;
      const { prev: prevOffset, last: lastOffset } = pill;
      const known = rows.get(symbol);
      if (late && known !== undefined) rows.set(symbol, { ...known, lastOffset });
      else {
        rows.set(symbol, {
          partition,
          offset,
          lastOffset,
          prevOffset,
          backfill,
          receivedAt,
          pill,
        });
      }
    },
    advance(partition, offset) {
      const known = offsets.get(partition);
      if (known !== undefined && known >= offset) return;
      offsets.set(partition, offset);
      positionText = undefined;
    },
    get: (symbol) => rows.get(symbol),
    rows: () => rows.values(),
    position() {
      positionText ??= formatPosition(epoch, offsets);
      return positionText;
    },
  };
}
