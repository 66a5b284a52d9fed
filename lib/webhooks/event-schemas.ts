import { Type } from 'typebox';
import { SYMBOL_PATTERN } from '../../schemas/pill.ts';
import { EPOCH_PATTERN } from '../../schemas/position.ts';
import { TIER_NAMES } from '../access/tiers.ts';
import { WARN_PERCENTS } from './schedule.ts';

const SECOND = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}';
const STRICT = { additionalProperties: false } as const;
const CURSOR_PATTERN = '^\\d{1,5}-\\d{1,16}$';

/** As all times of pills, and `timestamp` of every body. */
const Micros = Type.String({
  pattern: `${SECOND}\\.\\d{6}Z$`,
  description: 'UTC, six decimals: 2026-11-20T01:02:03.011000Z',
});
const Millis = Type.String({
  pattern: `${SECOND}\\.\\d{3}Z$`,
  description: 'UTC, three decimals: 2026-11-20T09:00:00.000Z',
});
const Seconds = Type.String({
  pattern: `${SECOND}Z$`,
  description: 'UTC, no decimals: 2026-11-21T00:00:00Z',
});
/** What PostgreSQL makes of a time in JSON: zeros at the end are dropped, UTC is `+00:00`. */
const WithOffset = Type.String({
  pattern: `${SECOND}(\\.\\d{1,6})?\\+00:00$`,
  description: 'UTC, no to six decimals, +00:00 at its end: 2026-11-20T09:00:00.25+00:00',
});
const Endpoint = Type.String({ pattern: '^whe_[a-z0-9]{12}$', description: 'The endpoint' });
const Tier = Type.Enum([...TIER_NAMES]);
const Status = Type.Enum(['active', 'past_due', 'ended']);

const Pill = Type.Object(
  {
    epoch: Type.String({ pattern: EPOCH_PATTERN, description: 'What the cursors belong to' }),
    cursor: Type.String({ pattern: CURSOR_PATTERN, description: 'Where it is in the log' }),
    prev: Type.Union([Type.String({ pattern: CURSOR_PATTERN }), Type.Null()], {
      description: 'Cursor of the pill of its symbol before it; null where that cannot be said',
    }),
    id: Type.String({ description: 'Chosen by the sender; (symbol, id) is the identity' }),
    timestamp: Micros,
    symbol: Type.String({ pattern: SYMBOL_PATTERN }),
    gross_spread_percent: Type.Number(),
    market_state: Type.String(),
    confidence: Type.Number({ minimum: 0 }),
    received_at: Micros,
    late: Type.Optional(
      Type.Literal(true, { description: 'Older than one of its symbol before it; only when so' }),
    ),
    backfill: Type.Optional(
      Type.Literal(true, { description: 'Received long after its timestamp; only when so' }),
    ),
  },
  STRICT,
);

const PaymentDue = {
  tier: Tier,
  days_left: Type.Integer({ minimum: 0, maximum: 7, description: 'Days of access that are left' }),
};

const LastAttempt = {
  endpoint: Endpoint,
  url: Type.String(),
  last_status: Type.Union([Type.Integer({ minimum: 100, maximum: 999 }), Type.Null()], {
    description: 'HTTP status of the last attempt; null = no answer came',
  }),
  last_reason: Type.Union([Type.String(), Type.Null()], {
    description: 'What was wrong with the last attempt, one word',
  }),
};

/** `data` of every type of body: nothing but these members. */
export const EVENT_DATA = {
  'pill.published': Pill,
  'pills.published': Type.Object(
    {
      pills: Type.Array(Pill, { minItems: 1 }),
      replayed: Type.Optional(
        Type.Literal(true, { description: 'Their owner asked for them again; only when so' }),
      ),
    },
    STRICT,
  ),
  'endpoint.test': Type.Object(
    {
      endpoint: Endpoint,
      challenge: Type.String({ description: 'What the answer must contain' }),
    },
    STRICT,
  ),
  'quota.warning': Type.Object(
    {
      policy: Type.Literal('daily'),
      percent: Type.Enum([80, 95, 100]),
      used: Type.Integer({ minimum: 1 }),
      limit: Type.Integer({ minimum: 1 }),
      resets_at: Seconds,
    },
    STRICT,
  ),
  'key.expiring': Type.Object(
    {
      key: Type.String({ pattern: '^key_[a-z0-9]{12}$', description: 'The key’s id' }),
      hint: Type.String({ description: 'What lists show of it' }),
      name: Type.String(),
      expires_at: WithOffset,
    },
    STRICT,
  ),
  'subscription.changed': Type.Object(
    {
      tier: Tier,
      status: Status,
      previous_tier: Type.Union([Tier, Type.Null()], { description: 'null = there was none' }),
      previous_status: Type.Union([Status, Type.Null()]),
      period_end: Millis,
      cancel_at_period_end: Type.Boolean(),
    },
    STRICT,
  ),
  'payment.failed': Type.Object(
    { ...PaymentDue, past_due_since: Millis, access_ends_at: Millis },
    STRICT,
  ),
  'payment.reminder': Type.Object(
    { ...PaymentDue, past_due_since: WithOffset, access_ends_at: WithOffset },
    STRICT,
  ),
  'endpoint.failing': Type.Object(
    {
      ...LastAttempt,
      failing_since: Millis,
      percent: Type.Enum([...WARN_PERCENTS]),
      disabled_at: Millis,
    },
    STRICT,
  ),
  'endpoint.disabled': Type.Object(
    {
      ...LastAttempt,
      reason: Type.Enum(['failing', 'gone']),
      failing_since: Type.Union([Millis, Type.Null()]),
      recover: Type.String({
        pattern: '^POST /api/webhooks/whe_[a-z0-9]{12}/recover$',
        description: 'The call that sends again what was missed',
      }),
    },
    STRICT,
  ),
} as const;

/** The body of a type. */
export function bodySchema<Name extends keyof typeof EVENT_DATA>(type: Name) {
  const data = EVENT_DATA[type];
  return Type.Object({ type: Type.Literal(type), timestamp: Micros, data }, STRICT);
}
