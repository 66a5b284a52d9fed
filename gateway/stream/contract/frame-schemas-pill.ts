import { Type } from 'typebox';

/** Parts that frames share; every object is closed, so that a test finds what is not told here. */
export const closed = { additionalProperties: false } as const;

const CURSOR = { pattern: '^\\d{1,5}-\\d{1,16}$' } as const;

export const CursorSchema = Type.String({
  ...CURSOR,
  description: 'Where a pill stands in the log: <partition>-<offset>.',
});
export const CursorOrNull = (description: string) =>
  Type.Union([Type.String(CURSOR), Type.Null()], { description });

export const PositionSchema = Type.String({
  pattern: '^[a-z0-9]{1,16}:(\\d{1,5}-\\d{1,16}(,\\d{1,5}-\\d{1,16})*)?$',
  description:
    'All that matched up to and including these cursors has been sent, once every subscribe that you sent is `live`: resume from it.',
});

export const TimeSchema = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$',
  description: 'UTC, microseconds.',
});

export const CountSchema = (description: string) => Type.Integer({ minimum: 0, description });

export const Millis = CountSchema('Milliseconds.');

export const Id = Type.Optional(
  Type.String({ description: 'Of the client frame that is answered.' }),
);

export const oneOf = <const T extends string>(names: readonly T[], description?: string) =>
  Type.Union(
    names.map((name) => Type.Literal(name)),
    description === undefined ? {} : { description },
  );

const Flag = (description: string) => Type.Optional(Type.Literal(true, { description }));

const FIELDS = {
  id: Type.String({ minLength: 1 }),
  timestamp: TimeSchema,
  symbol: Type.String({ minLength: 1 }),
  gross_spread_percent: Type.Number(),
  market_state: Type.String({ minLength: 1 }),
  confidence: Type.Number({ minimum: 0 }),
  received_at: TimeSchema,
};
const BACKFILL = Flag(
  'It reached us later after its timestamp than the backfill age (60 s by default).',
);

/** A pill as `pill` and `pills` carry it; flags stand there only when set. */
export const PILL = {
  cursor: CursorSchema,
  prev: CursorOrNull('Cursor of the pill of this symbol before it; null where none is told.'),
  ...FIELDS,
  late: Flag('A newer one of its symbol came before it.'),
  backfill: BACKFILL,
  replayed: Flag('Part of a replay.'),
  skipped: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Pills of its symbol that `latest` left out.' }),
  ),
};

/** A row of a snapshot: the newest pill of a symbol. */
export const ROW = {
  cursor: CursorSchema,
  last_cursor: CursorOrNull('`prev` of the next live pill of the symbol.'),
  prev: PILL.prev,
  ...FIELDS,
  backfill: BACKFILL,
};
