import { Type } from 'typebox';
import { QUIET_REASONS } from '../../../domain/market/quiet/silence.ts';
import { PUBLIC_PILL_EXAMPLE } from '../../../schemas/public-pill.ts';
import { PillSchema, PositionSchema } from '../pills/pill-schemas.ts';
import { exampleOf, integers, numbers, texts } from '../server/example.ts';
import { orNull } from '../server/schemas.ts';
import { verdictLimits } from './limits.ts';
import { REASON_LIST, VERDICTS } from './reasons.ts';

const Time = (description: string, ...examples: readonly string[]) =>
  Type.String({ description, ...(examples.length > 0 && { examples }) });
const States = Type.Enum(['open', 'lunch_break', 'closed', 'holiday', 'unknown']);

const { prev: _, ...pill } = PUBLIC_PILL_EXAMPLE;
const Pill = Type.Omit(PillSchema, ['prev'], { examples: [pill] });

const Reason = Type.Object({
  code: Type.Enum(
    REASON_LIST.map(({ code }) => code),
    {
      description: REASON_LIST.map(
        ({ code, verdict, meaning }) => `\`${code}\` (${verdict}): ${meaning}`,
      ).join('\n\n'),
    },
  ),
  detail: Type.String(),
  cursor: Type.Optional(Type.String({ description: 'Cursor of the newer pill' })),
});
const Reasons = Type.Array(Reason, { description: 'All reasons, worst first', examples: [[]] });

const judged = {
  checked_at: Time('Time of the verdict, by our clock', '2026-11-20T01:02:03.456000Z'),
  verdict: Type.Enum([...VERDICTS], {
    description: 'The first of these that applies',
    examples: ['verified'],
  }),
  usable: Type.Boolean({ description: 'True if the verdict is `verified`', examples: [true] }),
  reasons: Reasons,
  valid_until: Time(
    'First moment at which the verdict can change: an opening or a close, the end of the age that ' +
      'a pill may have, or the next expected pill',
    '2026-11-20T01:02:08.004000Z',
  ),
  ask_again_at: Time(
    '`valid_until`, or later while pills come fast: asking at these moments follows a symbol all ' +
      "day with less than Basic's 1,000 calls",
    '2026-11-20T01:02:26.750000Z',
  ),
};

const evaluated = {
  age_ms: orNull(Type.Integer({ examples: [452] }), 'From the timestamp to `checked_at`'),
  ...integers({ max_age_ms: 5_000 }),
  market: Type.Object({
    venue: orNull(Type.String({ examples: ['XTKS'] }), 'ISO 10383, `FX`, or `ALWAYS`'),
    timezone: orNull(Type.String({ examples: ['Asia/Tokyo'] })),
    session_date: orNull(Type.String({ examples: ['2026-11-20'] })),
    now: States,
    at_pill: orNull(States),
    half_day: Type.Boolean({ examples: [false] }),
    next: orNull(
      Type.Object(
        { at: Type.String(), state: States },
        { examples: [{ at: '2026-11-20T02:30:00.000000Z', state: 'lunch_break' }] },
      ),
    ),
    basis: Type.Enum(['calendar', 'always_open', 'none'], {
      description: 'Source of the state; unscheduled halts are not known',
    }),
    calendar_until: orNull(Type.String({ examples: ['2027-12-31'] }), 'Last day of the calendar'),
  }),
  agreement: orNull(
    Type.Object({
      ...texts({ pill: 'open' }),
      calendar: States,
      agrees: orNull(Type.Boolean({ examples: [true] }), 'Null if the label is not known'),
    }),
  ),
  generator: Type.Object({
    state: Type.Enum(['alive', 'silent', 'never']),
    last_received_at: orNull(Type.String({ examples: ['2026-11-20T01:02:03.420000Z'] })),
    silent_ms: orNull(Type.Integer({ examples: [36] })),
    ...integers({ late_after_ms: 5_000 }),
  }),
  spread: orNull(
    Type.Object({
      ...numbers({ value: 0.1261 }),
      n: Type.Integer({ description: 'Number of live pills compared', examples: [1_000] }),
      ...texts({ window: 'last 1000 pills' }),
      ...numbers({ median: 0.118, p01: 0.07, p99: 0.21 }),
      robust_z: orNull(
        Type.Number({ examples: [0.41] }),
        '0.6745 × (value − median) / MAD (Iglewicz and Hoaglin 1993); if the MAD is 0, ' +
          '(value − median) / (1.2533 × mean absolute deviation); null if infinite',
      ),
      percentile: Type.Number({
        description: 'Share of the spreads that are not above the value',
        examples: [0.71],
      }),
    }),
  ),
  quiet: Type.Union(
    [
      Type.Object({
        reason: Type.Enum(Object.keys(QUIET_REASONS)),
        since: orNull(Type.String()),
        expected_back: orNull(Type.String()),
      }),
      Type.Null(),
    ],
    { examples: [null] },
  ),
  limits: Type.Record(Type.String(), Type.Number(), {
    description: 'The limits that decided the verdict',
    examples: [verdictLimits(5_000, 5_000)],
  }),
};

const published = {
  published: Type.Literal(true),
  is_latest: Type.Boolean(),
  repeats: orNull(Type.Integer(), 'How often the pill was sent again; null if the pill is too old'),
  conflicts: orNull(
    Type.Integer(),
    'How often the pill was sent with other content, which has no effect',
  ),
  epoch: Type.Optional(Type.String({ description: 'Epoch of the cursor, if it is a former one' })),
};

const OfSymbol = Type.Object(texts({ symbol: '7203.T' }));
const OfPill = Type.Object({ symbol: Type.String(), id: Type.String() });

const VerdictSchema = Type.Object({
  subject: OfSymbol,
  ...judged,
  pill: orNull(Pill),
  ...evaluated,
  position: PositionSchema,
});
const FoundSchema = Type.Object({
  subject: OfPill,
  ...judged,
  pill: Pill,
  ...published,
  position: PositionSchema,
});
const MissingSchema = Type.Object({
  subject: OfPill,
  published: orNull(Type.Literal(false, { description: 'Null if a part was not searched' })),
  ...judged,
  position: PositionSchema,
  searched_from: orNull(Time('Receive time of the oldest pill searched; null if unknown')),
});
const LatestFoundSchema = Type.Object({ ...FoundSchema.properties, ...evaluated });
export const AnswerSchema = Type.Union([
  VerdictSchema,
  LatestFoundSchema,
  FoundSchema,
  MissingSchema,
  Type.Object({
    data: Type.Record(Type.String(), VerdictSchema),
    errors: Type.Record(Type.String(), Type.Object({ code: Type.String(), detail: Type.String() })),
    position: PositionSchema,
  }),
  Type.Object({
    data: Type.Array(Type.Union([LatestFoundSchema, FoundSchema])),
    complete: Type.Boolean({
      description: 'False if more pills have the id, or a part was not searched',
    }),
    reasons: Reasons,
    position: PositionSchema,
  }),
]);

/** A verdict about a symbol, for the API reference. */
export const VERDICT_EXAMPLE = exampleOf(VerdictSchema);
