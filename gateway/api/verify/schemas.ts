import { Type } from 'typebox';
import { QUIET_REASONS } from '../../../lib/signal/silence.ts';
import { orNull } from '../or-null.ts';
import { PillSchema, PositionSchema } from '../pill-schemas.ts';
import { REASONS, VERDICTS } from './reasons.ts';

const Time = (description: string) => Type.String({ description });
const States = Type.Enum(['open', 'lunch_break', 'closed', 'holiday', 'unknown']);

const Pill = Type.Omit(PillSchema, ['prev']);

const Reason = Type.Object({
  code: Type.Enum(Object.keys(REASONS), {
    description: Object.entries(REASONS)
      .map(([code, { verdict, meaning }]) => `\`${code}\` (${verdict}): ${meaning}`)
      .join('\n\n'),
  }),
  detail: Type.String(),
  cursor: Type.Optional(Type.String({ description: 'Of the newer pill' })),
});
const Reasons = Type.Array(Reason, { description: 'All that stands against it, the worst first' });

const judged = {
  checked_at: Time('Our clock'),
  verdict: Type.Enum([...VERDICTS], { description: 'The first of them that applies' }),
  usable: Type.Boolean({ description: 'The verdict is `verified`' }),
  reasons: Reasons,
  valid_until: Time('When to ask again'),
};

const weighed = {
  age_ms: orNull(Type.Integer({ description: 'From its timestamp to `checked_at`' })),
  max_age_ms: Type.Integer(),
  market: Type.Object({
    venue: orNull(Type.String({ description: 'ISO 10383, `FX`, or `ALWAYS`' })),
    timezone: orNull(Type.String()),
    session_date: orNull(Type.String()),
    now: States,
    at_pill: orNull(States),
    half_day: Type.Boolean(),
    next: orNull(Type.Object({ at: Type.String(), state: States })),
    basis: Type.Enum(['calendar', 'always_open', 'none'], {
      description: 'What the state is known from; unscheduled halts are not seen',
    }),
    calendar_until: orNull(Type.String({ description: 'The last day that the calendar knows' })),
  }),
  agreement: orNull(
    Type.Object({
      pill: Type.String(),
      calendar: States,
      agrees: orNull(Type.Boolean({ description: 'Null for a label that is not known' })),
    }),
  ),
  generator: Type.Object({
    state: Type.Enum(['alive', 'silent', 'never']),
    last_received_at: orNull(Type.String()),
    silent_ms: orNull(Type.Integer()),
    late_after_ms: Type.Integer(),
  }),
  spread: orNull(
    Type.Object({
      value: Type.Number(),
      n: Type.Integer({ description: 'Live pills that it is held against' }),
      window: Type.String(),
      median: Type.Number(),
      p01: Type.Number(),
      p99: Type.Number(),
      robust_z: orNull(
        Type.Number({
          description:
            '0.6745 × (value − median) / MAD (Iglewicz and Hoaglin 1993); where the MAD is 0, ' +
            '(value − median) / (1.2533 × mean absolute deviation); null: infinite',
        }),
      ),
      percentile: Type.Number({ description: 'Share of them that is not above it' }),
    }),
  ),
  quiet: orNull(
    Type.Object({
      reason: Type.Enum(Object.keys(QUIET_REASONS)),
      since: orNull(Type.String()),
      expected_back: orNull(Type.String()),
    }),
  ),
  limits: Type.Record(Type.String(), Type.Number(), { description: 'What decided the verdict' }),
};

const published = {
  published: Type.Literal(true),
  is_latest: Type.Boolean(),
  repeats: orNull(Type.Integer({ description: 'How often it came again; null: too long ago' })),
  conflicts: orNull(Type.Integer({ description: 'And with other content, without effect' })),
  epoch: Type.Optional(Type.String({ description: 'Of its cursor, where that log is no more' })),
};

const OfSymbol = Type.Object({ symbol: Type.String() });
const OfPill = Type.Object({ symbol: Type.String(), id: Type.String() });

const VerdictSchema = Type.Object({
  ...{ subject: OfSymbol, ...judged, pill: orNull(Pill), ...weighed, position: PositionSchema },
});
const FoundSchema = Type.Object({
  ...{ subject: OfPill, ...judged, pill: Pill, ...published, position: PositionSchema },
});
const MissingSchema = Type.Object({
  subject: OfPill,
  published: orNull(Type.Literal(false, { description: 'Null: a part was not searched' })),
  ...{ ...judged, position: PositionSchema },
  searched_from: orNull(Time('Receive time of the oldest pill that was searched')),
});
export const AnswerSchema = Type.Union([
  VerdictSchema,
  Type.Object({ ...FoundSchema.properties, ...weighed }),
  FoundSchema,
  MissingSchema,
  Type.Object({
    data: Type.Record(Type.String(), VerdictSchema),
    errors: Type.Record(Type.String(), Type.Object({ code: Type.String(), detail: Type.String() })),
    position: PositionSchema,
  }),
  Type.Object({
    data: Type.Array(
      Type.Union([Type.Object({ ...FoundSchema.properties, ...weighed }), FoundSchema]),
    ),
    complete: Type.Boolean({ description: 'False: more have the id, or a part was not searched' }),
    reasons: Reasons,
    position: PositionSchema,
  }),
]);
