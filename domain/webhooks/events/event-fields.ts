import { Type } from 'typebox';
import { PILL_FIELDS } from '../../../schemas/pill-fields.ts';
import { EPOCH_PATTERN } from '../../../schemas/position.ts';
import { TIER_NAMES } from '../../access/tiers.ts';

const SECOND = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}';
const CURSOR_PATTERN = '^\\d{1,5}-\\d{1,16}$';
export const STRICT = { additionalProperties: false } as const;

/** Like all times of pills, and `timestamp` of every body. */
export const Micros = Type.String({
  pattern: `${SECOND}\\.\\d{6}Z$`,
  description: 'UTC with six decimals: 2026-11-20T01:02:03.011000Z',
});
export const Millis = Type.String({
  pattern: `${SECOND}\\.\\d{3}Z$`,
  description: 'UTC with three decimals: 2026-11-20T09:00:00.000Z',
});
export const Seconds = Type.String({
  pattern: `${SECOND}Z$`,
  description: 'UTC without decimals: 2026-11-21T00:00:00Z',
});
/** A time as PostgreSQL writes it into JSON: trailing zeros are dropped, UTC is `+00:00`. */
export const WithOffset = Type.String({
  pattern: `${SECOND}(\\.\\d{1,6})?\\+00:00$`,
  description: 'UTC with up to six decimals and +00:00 at the end: 2026-11-20T09:00:00.25+00:00',
});

export const EndpointId = Type.String({
  pattern: '^whe_[a-z0-9]{12}$',
  description: 'Id of the endpoint',
});
export const Tier = Type.Enum([...TIER_NAMES]);
export const SubscriptionStatus = Type.Enum(['active', 'past_due', 'ended']);

export const Pill = Type.Object(
  {
    epoch: Type.String({ pattern: EPOCH_PATTERN, description: 'Epoch that the cursors belong to' }),
    cursor: Type.String({
      pattern: CURSOR_PATTERN,
      description: 'Position of the pill in the log',
    }),
    prev: Type.Union([Type.String({ pattern: CURSOR_PATTERN }), Type.Null()], {
      description: 'Cursor of the previous pill of the symbol; null where it is unknown',
    }),
    id: PILL_FIELDS.id,
    timestamp: Micros,
    symbol: PILL_FIELDS.symbol,
    gross_spread_percent: PILL_FIELDS.gross_spread_percent,
    market_state: PILL_FIELDS.market_state,
    confidence: PILL_FIELDS.confidence,
    received_at: Micros,
    late: Type.Optional(
      Type.Literal(true, {
        description: 'The pill is older than an earlier one of its symbol; absent otherwise',
      }),
    ),
    backfill: Type.Optional(
      Type.Literal(true, {
        description: 'The pill was received long after its timestamp; absent otherwise',
      }),
    ),
  },
  STRICT,
);

/** Members of the events about a payment that is due. */
export const PAYMENT_DUE = {
  tier: Tier,
  days_left: Type.Integer({ minimum: 0, maximum: 7, description: 'Days until access ends' }),
};

/** Members of the events about an endpoint that fails. */
export const LAST_ATTEMPT = {
  endpoint: EndpointId,
  url: Type.String(),
  last_status: Type.Union([Type.Integer({ minimum: 100, maximum: 999 }), Type.Null()], {
    description: 'HTTP status of the last attempt; null = there was no answer',
  }),
  last_reason: Type.Union([Type.String(), Type.Null()], {
    description: 'Why the last attempt failed, in one word',
  }),
};
