import { Type } from 'typebox';
import { SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { EPOCH_PATTERN, PLACE_PATTERN, POSITION_LENGTH_MAX } from '../../../schemas/position.ts';
import { AS_OF_EXAMPLE, AsOfSchema } from '../clickhouse/stored.ts';
import { PILL_EXAMPLE, PillSchema, PositionSchema } from '../pill-schemas.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { csvOfPills } from './rows.ts';

const TIME_PATTERN =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6})?(Z|\\+00:00)$';
const { pageDefault, pageMax, rangeDaysMax, placesMax } = HISTORY_LIMITS;

const time = (description: string) =>
  Type.Optional(
    Type.String({ pattern: TIME_PATTERN, description, examples: ['2026-11-20T00:00:00Z'] }),
  );
const place = (description: string) =>
  Type.Optional(
    Type.String({
      pattern: PLACE_PATTERN,
      maxLength: POSITION_LENGTH_MAX,
      description,
      examples: ['3-104'],
    }),
  );

/** Told in the document; the route reads the query itself, and says more about a fault. */
export const HistoryQuerySchema = Type.Object(
  {
    symbol: Type.Optional(
      Type.String({ pattern: SYMBOL_PATTERN, description: 'Of this symbol; wanted with from' }),
    ),
    from: time('By time: order time at or after this'),
    to: time(`Order time before this; at most ${rangeDaysMax} days later. By default now`),
    epoch: Type.Optional(
      Type.String({ pattern: EPOCH_PATTERN, description: 'By position: log of bare cursors' }),
    ),
    after: place('A cursor or position, excluded; by default the beginning'),
    until: place('A cursor or position, included; by default what is stored now'),
    grant: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,12}\\.[A-Za-z0-9_-]{43}$',
        description: 'Of a gap frame: fills exactly its range without a call being counted',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: pageMax,
        default: pageDefault,
        description: 'Of a page',
      }),
    ),
    page: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]{43}$',
        description: 'As `next` of the page before has it',
      }),
    ),
    format: Type.Optional(
      Type.Union([Type.Literal('json'), Type.Literal('csv')], { description: 'Before Accept' }),
    ),
  },
  { additionalProperties: false },
);

const HistoryPillSchema = Type.Object({
  ...PillSchema.properties,
  late: Type.Optional(
    Type.Literal(true, { description: 'Older in order time than one of its symbol before it' }),
  ),
  epoch: Type.Optional(Type.String({ description: 'Of a cursor of another log than `as_of`' })),
});

const PageSchema = Type.Object({
  data: Type.Array(HistoryPillSchema),
  next: Type.Union([Type.String(), Type.Null()], {
    description: 'Address of the next page; null at the end. A page may be short before it',
  }),
  position: Type.Optional(PositionSchema),
  as_of: Type.Object(AsOfSchema.properties, {
    description: 'What history knew at the first page; later pages answer the same',
  }),
});

const OLDER = { ...PILL_EXAMPLE, cursor: '3-131', prev: '3-130', id: 'p-9' };

export const HISTORY_ANSWER = {
  description:
    'A page of pills. `Link` has the address of the next one too (`rel="next"`); CSV has it there ' +
    'alone, and its position in `Pill-Position`.',
  schema: PageSchema,
  example: {
    data: [OLDER, PILL_EXAMPLE],
    next: null,
    position: 'k7f3:0-95,3-132',
    as_of: { ...AS_OF_EXAMPLE, lag_ms: 0 },
  },
  others: {
    'text/csv': { schema: Type.String(), example: csvOfPills([OLDER, PILL_EXAMPLE]) },
  },
};

export const HISTORY_DESCRIPTION =
  'By time: `symbol`, `from` and `to`, in order time (the earlier of `timestamp` and `received_at`), ' +
  `at most ${rangeDaysMax} days. By position: \`after\` and \`until\`, partition after partition, each in ` +
  `the order of the log, at most ${placesMax} places; a cursor needs \`epoch\`. Without \`symbol\` all symbols ` +
  'but those that begin with TEST:. Each pill once, late ones and backfill too. Nothing is silently missing: ' +
  'where pills up to `until` are not stored yet the answer is 503 `history_behind`, and `as_of` tells ' +
  'what was looked at. Each page is a call, but for the gap of a stream: its `grant` makes it free.';
