import { Type } from 'typebox';
import {
  CURSOR_OR_POSITION_PATTERN,
  EPOCH_PATTERN,
  POSITION_LENGTH_MAX,
} from '../../../schemas/position.ts';
import { PUBLIC_PILL_EXAMPLE } from '../../../schemas/public-pill.ts';
import { AsOfSchema } from '../clickhouse/table-coverage.ts';
import { PillSchema, PositionSchema } from '../pills/pill-schemas.ts';
import { BINARY_ANSWERS } from '../server/binary-answers.ts';
import { exampleOf } from '../server/example.ts';
import { ruled } from '../server/form.ts';
import { UNKNOWN_SYMBOLS } from '../server/known-symbols.ts';
import { FORMATS } from '../server/media-type.ts';
import { ReceiptSchema } from '../server/receipt-schema.ts';
import {
  choice,
  optionalText,
  orNull,
  PAGE_HINT,
  strict,
  symbolOf,
  timeOf,
  whole,
} from '../server/schemas.ts';
import { symbolList } from '../server/symbol-list.ts';
import { csvOfPills } from './history-pill.ts';
import { RANGE_END_HINT } from './history-query.ts';
import { HISTORY_LIMITS } from './limits.ts';

const { pageDefault, pageMax, rangeDaysMax, offsetsMax, symbolsMax } = HISTORY_LIMITS;

const time = (description: string) => Type.Optional(timeOf(description));
const rangeEnd = (description: string) =>
  optionalText(description, {
    pattern: ruled(CURSOR_OR_POSITION_PATTERN, 'position_malformed', RANGE_END_HINT),
    maxLength: POSITION_LENGTH_MAX,
    examples: ['3-104'],
  });

/** For the OpenAPI document; the route parses the query itself, for better error messages. */
export const HistoryQuerySchema = strict({
  symbol: Type.Optional(symbolOf('Market symbol; by time, `symbol` or `symbols` is required')),
  symbols: symbolList(symbolsMax, 'by time only'),
  order: choice(
    ['asc', 'desc'],
    'By time: `asc`, the default, is oldest first, and `desc` newest first',
  ),
  from: time(
    'By time: order time at or after this time; required unless `order=desc`, then by default ' +
      `${rangeDaysMax} days before \`to\``,
  ),
  to: time(
    `Order time before this time, at most ${rangeDaysMax} days after \`from\`; now by default`,
  ),
  epoch: optionalText('By position: the epoch of the cursors', {
    pattern: ruled(
      EPOCH_PATTERN,
      'epoch_malformed',
      'An epoch has 1 to 16 lower-case letters and digits, as in a position.',
    ),
  }),
  after: rangeEnd('A cursor or position, exclusive; the beginning by default'),
  until: rangeEnd('A cursor or position, inclusive; the end of what is stored by default'),
  grant: optionalText(
    'The grant of a gap frame: requests for exactly its range are not counted as calls',
    {
      pattern: ruled(
        '^[0-9]{1,12}\\.[A-Za-z0-9_-]{43}$',
        'malformed',
        'Send the grant of the gap frame unchanged, or omit `grant`.',
      ),
    },
  ),
  limit: whole(1, pageMax, pageDefault, 'Pills per page'),
  page: optionalText('From `next` of the previous page', {
    pattern: ruled('^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]{43}$', 'page_unknown', PAGE_HINT),
  }),
  format: choice(FORMATS, 'Format of the answer; takes precedence over Accept'),
});

const HistoryPillSchema = Type.Object({
  ...PillSchema.properties,
  late: Type.Optional(
    Type.Literal(true, {
      description: 'An earlier pill of the symbol in the log has a later order time',
    }),
  ),
  epoch: optionalText('Epoch of the cursor, if it is not that of `as_of`'),
});

const PageSchema = Type.Object({
  data: Type.Array(HistoryPillSchema),
  next: orNull(
    Type.String(),
    'URL of the next page; null on the last page. Earlier pages may be short too',
  ),
  position: Type.Optional(PositionSchema),
  receipt: ReceiptSchema,
  as_of: Type.Object(AsOfSchema.properties, {
    description: 'State of history at the first page; later pages keep it',
  }),
  ...UNKNOWN_SYMBOLS,
});

const OLDER = { ...PUBLIC_PILL_EXAMPLE, cursor: '3-131', prev: '3-130', id: 'p-9' };

export const HISTORY_ANSWER = {
  description:
    'A page of pills. The header `Link` (`rel="next"`) also has the URL of the next page. With CSV, ' +
    'Arrow and Parquet, that URL is only in `Link`, the position in `Pill-Position`, and the receipt ' +
    'in `Pill-Receipt` (a dictionary of RFC 9651). Arrow and Parquet have the columns of CSV with ' +
    'real types: times in µs UTC, doubles, booleans, and dictionaries of symbols, states and epochs.',
  schema: PageSchema,
  example: {
    data: [OLDER, PUBLIC_PILL_EXAMPLE],
    next: null,
    position: 'k7f3:0-95,3-132',
    as_of: { ...exampleOf(AsOfSchema), lag_ms: 0 },
    receipt: exampleOf(ReceiptSchema),
  },
  others: {
    'text/csv': { schema: Type.String(), example: csvOfPills([OLDER, PUBLIC_PILL_EXAMPLE]) },
    ...BINARY_ANSWERS,
  },
};

export const HISTORY_DESCRIPTION =
  'By time: `symbol`, or `symbols` with up to ' +
  `${symbolsMax}, from \`from\` to \`to\`, by order time (the earlier of \`timestamp\` and ` +
  '`received_at`), then by symbol, then by offset, oldest first or, with `order=desc`, newest ' +
  `first, at most ${rangeDaysMax} days. By position: \`after\` and \`until\`, one partition after another, ` +
  `each in log order, at most ${offsetsMax} offsets; a cursor needs \`epoch\`. Without \`symbol\`, ` +
  'all symbols except those that begin with TEST:. Every pill appears once, late pills and backfill ' +
  'included. Nothing is silently missing: while pills up to `until` are not stored yet, the answer ' +
  'is 503 `history_behind`, and `as_of` says which pills an answer takes into account. Each page is ' +
  'one call, except that the `grant` of a stream gap makes its pages free. `receipt` covers all pages ' +
  'up to this one: compare it with what you have, to prove that you have everything.';
