import { createNames, type Names } from '../../lib/columns/names.ts';
import { createTextColumn } from '../../lib/columns/text-column.ts';
import type { EffectivePill } from './judge.ts';
import { ID_WIDTH } from './repeat-window.ts';
import { orderTime } from './time.ts';

/** The members of a pill that decide whether a reader wants it. */
export type PillView = Pick<
  EffectivePill,
  | 'symbol'
  | 'received_at'
  | 'backfill'
  | 'late'
  | 'gross_spread_percent'
  | 'market_state'
  | 'confidence'
>;

export type PillColumns = ReturnType<typeof createPillColumns>;

/** Numbers of a row, in one array: a row is mostly read as a whole. */
const NUMBERS = 7;
const TIMESTAMP = 0;
const RECEIVED_AT = 1;
const SPREAD = 2;
const CONFIDENCE = 3;
const OFFSET = 4;
const PREV = 5;
const LAST = 6;
/** Shared texts of a row. */
const TEXTS = 4;
const SYMBOL = 0;
const STATE = 1;
const SOURCE = 2;
const KIND = 3;
const FLAGS = { late: 1, backfill: 2, hasSource: 4, hasKind: 8 } as const;
/** No offset. */
const NONE = -1;

/** Rows of a block, a power of two: few pills need little memory. */
const BLOCK_ROWS = 1_024;
const BLOCK_BITS = Math.log2(BLOCK_ROWS);
const ROW_MASK = BLOCK_ROWS - 1;

/**
 * Creates rows for pills with effect, in columns outside V8's heap: some 120 bytes a row, which no
 * collection of garbage copies or follows. A row is free until it is set, and after it is cleared;
 * memory is taken up to the highest row that was ever set.
 */
export function createPillColumns() {
  const blocks: Block[] = [];
  const names = createNames();
  const cells = cellsOf(blocks, names);
  const { blockOf, numberAt, symbolOf } = cells;
  return {
    /** The symbols, states and other shared texts of all rows. */
    names,
    set(row: number, pill: EffectivePill): void {
      while (blocks.length <= row >>> BLOCK_BITS) blocks.push(createBlock());
      setRow(blockOf(row), names, row & ROW_MASK, pill);
    },
    /** A pill of its own, equal to the one that was set. */
    get: (row: number): EffectivePill => pillAt(cells, row),
    clear(row: number): void {
      const { texts, ids } = blockOf(row);
      const at = (row & ROW_MASK) * TEXTS;
      names.release(texts[at + SYMBOL]!);
      names.release(texts[at + STATE]!);
      if (cells.is(row, FLAGS.hasSource)) names.release(texts[at + SOURCE]!);
      if (cells.is(row, FLAGS.hasKind)) names.release(texts[at + KIND]!);
      ids.clear(row & ROW_MASK);
    },
    offsetOf: (row: number): number => numberAt(row, OFFSET),
    receivedAtOf: (row: number): number => numberAt(row, RECEIVED_AT),
    partitionOf: (row: number): number => blockOf(row).partitions[row & ROW_MASK]!,
    /** Number of the symbol in `names`. */
    symbolOf,
    hasId: (row: number, id: string): boolean => blockOf(row).ids.has(row & ROW_MASK, id),
    /** A view that shows one row at a time: the row that `move` was called with last. */
    createView: () => createView(cells),
  };
}

type Cells = ReturnType<typeof cellsOf>;

function cellsOf(blocks: readonly Block[], names: Names) {
  const blockOf = (row: number) => blocks[row >>> BLOCK_BITS]!;
  const numberAt = (row: number, of: number) =>
    blockOf(row).numbers[(row & ROW_MASK) * NUMBERS + of]!;
  return {
    blockOf,
    numberAt,
    offsetAt(row: number, of: number): number | null {
      const offset = numberAt(row, of);
      return offset === NONE ? null : offset;
    },
    textAt: (row: number, of: number): string =>
      names.nameOf(blockOf(row).texts[(row & ROW_MASK) * TEXTS + of]!),
    is: (row: number, flag: number): boolean => (blockOf(row).flags[row & ROW_MASK]! & flag) !== 0,
    symbolOf: (row: number): number => blockOf(row).texts[(row & ROW_MASK) * TEXTS + SYMBOL]!,
  };
}

function pillAt({ blockOf, numberAt, offsetAt, textAt, is }: Cells, row: number): EffectivePill {
  const timestamp = numberAt(row, TIMESTAMP);
  const receivedAt = numberAt(row, RECEIVED_AT);
  return {
    id: blockOf(row).ids.get(row & ROW_MASK),
    timestamp,
    symbol: textAt(row, SYMBOL),
    gross_spread_percent: numberAt(row, SPREAD),
    market_state: textAt(row, STATE),
    confidence: numberAt(row, CONFIDENCE),
    source: is(row, FLAGS.hasSource) ? textAt(row, SOURCE) : null,
    kind: is(row, FLAGS.hasKind) ? textAt(row, KIND) : null,
    received_at: receivedAt,
    partition: blockOf(row).partitions[row & ROW_MASK]!,
    offset: numberAt(row, OFFSET),
    order: orderTime(timestamp, receivedAt),
    late: is(row, FLAGS.late),
    backfill: is(row, FLAGS.backfill),
    prev: offsetAt(row, PREV),
    last: offsetAt(row, LAST),
  };
}

function createView({ numberAt, textAt, is }: Cells): PillView & { move(row: number): void } {
  let row = 0;
  return {
    move(to) {
      row = to;
    },
    get symbol() {
      return textAt(row, SYMBOL);
    },
    get received_at() {
      return numberAt(row, RECEIVED_AT);
    },
    get backfill() {
      return is(row, FLAGS.backfill);
    },
    get late() {
      return is(row, FLAGS.late);
    },
    get gross_spread_percent() {
      return numberAt(row, SPREAD);
    },
    get market_state() {
      return textAt(row, STATE);
    },
    get confidence() {
      return numberAt(row, CONFIDENCE);
    },
  };
}

type Block = ReturnType<typeof createBlock>;

function createBlock() {
  return {
    numbers: new Float64Array(BLOCK_ROWS * NUMBERS),
    /** Numbers of names. */
    texts: new Uint32Array(BLOCK_ROWS * TEXTS),
    partitions: new Uint32Array(BLOCK_ROWS),
    flags: new Uint8Array(BLOCK_ROWS),
    ids: createTextColumn(BLOCK_ROWS, ID_WIDTH),
  };
}

function setRow(block: Block, names: Names, row: number, pill: EffectivePill): void {
  const { numbers, texts } = block;
  const { source, kind } = pill;
  const at = row * NUMBERS;
  numbers[at + TIMESTAMP] = pill.timestamp;
  numbers[at + RECEIVED_AT] = pill.received_at;
  numbers[at + SPREAD] = pill.gross_spread_percent;
  numbers[at + CONFIDENCE] = pill.confidence;
  numbers[at + OFFSET] = pill.offset;
  numbers[at + PREV] = pill.prev ?? NONE;
  numbers[at + LAST] = pill.last ?? NONE;
  block.flags[row] =
    (pill.late ? FLAGS.late : 0) |
    (pill.backfill ? FLAGS.backfill : 0) |
    (source === null ? 0 : FLAGS.hasSource) |
    (kind === null ? 0 : FLAGS.hasKind);
  block.partitions[row] = pill.partition;
  const textsAt = row * TEXTS;
  texts[textsAt + SYMBOL] = names.take(pill.symbol);
  texts[textsAt + STATE] = names.take(pill.market_state);
  if (source !== null) texts[textsAt + SOURCE] = names.take(source);
  if (kind !== null) texts[textsAt + KIND] = names.take(kind);
  block.ids.set(row, pill.id);
}
