import { parquetWriteBuffer } from 'hyparquet-writer';
import { formatCursor } from '../../../schemas/position.ts';
import { publicPillText } from '../../../schemas/public-pill.ts';
import type { EffectivePill } from '../../order/judge.ts';
import type { Piece } from '../destination-type.ts';

/** How the pills of a piece become the bytes of an object; the same pills give the same bytes. */
export interface ObjectFormat {
  readonly extension: string;
  readonly contentType: string;
  encode(piece: Piece): Buffer;
}

const ndjson: ObjectFormat = {
  extension: 'ndjson',
  contentType: 'application/x-ndjson',
  encode: ({ epoch, pills }) =>
    Buffer.from(
      pills.map((pill) => `${publicPillText(pill, { epoch, prev: pill.prev })}\n`).join(''),
      'utf8',
    ),
};

type Element = Parameters<typeof parquetWriteBuffer>[0]['schema'] & object extends (infer E)[]
  ? E
  : never;

interface Column {
  readonly element: Omit<Element, 'name'>;
  value(pill: EffectivePill, epoch: string): string | number | bigint | boolean | null;
}

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' } as const;
const DOUBLE = { type: 'DOUBLE', repetition_type: 'REQUIRED' } as const;
const FLAG = { type: 'BOOLEAN', repetition_type: 'REQUIRED' } as const;
const LONG = { type: 'INT64', repetition_type: 'REQUIRED' } as const;
/** UTC: the logical type says so, and readers of before it read the converted type. */
const TIME = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MICROS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  repetition_type: 'REQUIRED',
} as const;

/** The columns of an export, in its order, so that one reader serves both. */
const COLUMNS: Readonly<Record<string, Column>> = {
  id: { element: TEXT, value: ({ id }) => id },
  timestamp: { element: TIME, value: ({ timestamp }) => BigInt(timestamp) },
  symbol: { element: TEXT, value: ({ symbol }) => symbol },
  gross_spread_percent: { element: DOUBLE, value: (pill) => pill.gross_spread_percent },
  market_state: { element: TEXT, value: (pill) => pill.market_state },
  confidence: { element: DOUBLE, value: ({ confidence }) => confidence },
  received_at: { element: TIME, value: (pill) => BigInt(pill.received_at) },
  late: { element: FLAG, value: ({ late }) => late },
  backfill: { element: FLAG, value: ({ backfill }) => backfill },
  epoch: { element: TEXT, value: (_, epoch) => epoch },
  cursor: { element: TEXT, value: (pill) => formatCursor(pill.partition, pill.offset) },
  partition: {
    element: { type: 'INT32', repetition_type: 'REQUIRED' },
    value: ({ partition }) => partition,
  },
  offset: { element: LONG, value: ({ offset }) => BigInt(offset) },
  prev: {
    element: { ...TEXT, repetition_type: 'OPTIONAL' },
    value: ({ partition, prev }) => (prev === null ? null : formatCursor(partition, prev)),
  },
};

const parquet: ObjectFormat = {
  extension: 'parquet',
  contentType: 'application/vnd.apache.parquet',
  encode({ epoch, pills }) {
    const columns = Object.entries(COLUMNS);
    const bytes = parquetWriteBuffer({
      schema: [
        { name: 'pill', num_children: columns.length },
        ...columns.map(([name, { element }]) => ({ name, ...element })),
      ],
      columnData: columns.map(([name, { value }]) => ({
        name,
        data: pills.map((pill) => value(pill, epoch)),
      })),
      rowGroupSize: pills.length,
      createdBy: 'pillole',
    });
    return Buffer.from(bytes);
  },
};

export const OBJECT_FORMATS = { ndjson, parquet } as const;
