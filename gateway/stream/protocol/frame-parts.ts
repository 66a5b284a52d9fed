import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { PILL_FIELDS } from '../../../schemas/pill-fields.ts';

/** A closed object, so tests find any field that the server sends and no schema documents. */
export const object = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

/** The part of a JSON Schema that messages and documents are made from. */
export interface Shape {
  readonly type?: string;
  readonly const?: unknown;
  readonly description?: string;
  readonly anyOf?: readonly Shape[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxLength?: number;
}

/** A union of string literals. */
export const oneOf = <const T extends string>(names: readonly T[], description?: string) =>
  Type.Unsafe<T>(
    Type.Union(
      names.map((name) => Type.Literal(name)),
      description === undefined ? {} : { description },
    ),
  );

/** The keys of a catalogue, typed. */
export const namesOf = <T extends object>(catalogue: T) => Object.keys(catalogue) as (keyof T)[];

export const orNull = <T extends TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });

const CURSOR = { pattern: '^\\d{1,5}-\\d{1,16}$' } as const;

export const CursorSchema = Type.String({
  ...CURSOR,
  description: 'Place of the pill in the log: `<partition>-<offset>`.',
});
export const cursorOrNull = (description: string) => orNull(Type.String(CURSOR), description);

/** The form of a position, in frames of both sides. */
export const POSITION_FORM = '^[a-z0-9]{1,16}:(\\d{1,5}-\\d{1,16}(,\\d{1,5}-\\d{1,16})*)?$';

export const PositionSchema = Type.String({
  pattern: POSITION_FORM,
  description:
    'Resume from here. All matching pills up to and including these cursors have been sent, ' +
    'once every `subscribe` you sent has been answered with `live`.',
});

export const TimeSchema = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$',
  description: 'UTC, in microseconds.',
});

export const countOf = (description: string) => Type.Integer({ minimum: 0, description });

export const Millis = countOf('Milliseconds.');

export const ReplyId = Type.Optional(
  Type.String({ description: 'The `id` of the client frame that this frame answers.' }),
);

const flag = (description: string) => Type.Optional(Type.Literal(true, { description }));

const FIELDS = {
  id: PILL_FIELDS.id,
  timestamp: TimeSchema,
  symbol: PILL_FIELDS.symbol,
  gross_spread_percent: PILL_FIELDS.gross_spread_percent,
  market_state: PILL_FIELDS.market_state,
  confidence: PILL_FIELDS.confidence,
  received_at: TimeSchema,
};
const BACKFILL = flag(
  'The pill arrived later after its timestamp than the backfill age (60 s by default).',
);

/** A pill in a `pill` or `pills` frame; flags are present only when set. */
export const PILL = {
  cursor: CursorSchema,
  prev: cursorOrNull("Cursor of the symbol's previous pill; null if the chain does not say."),
  ...FIELDS,
  late: flag('A newer pill of the symbol arrived before this one.'),
  backfill: BACKFILL,
  replayed: flag('Part of a replay.'),
  skipped: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Pills of the symbol that `latest` mode left out before this one.',
    }),
  ),
};

/** A snapshot row: the newest pill of a symbol. */
export const SNAPSHOT_PILL = {
  cursor: CursorSchema,
  last_cursor: cursorOrNull('`prev` of the next live pill of the symbol.'),
  prev: PILL.prev,
  ...FIELDS,
  backfill: BACKFILL,
};

/** The value that a schema describes. */
export type ValueOf<T> = T extends TSchema ? Static<T> : never;
