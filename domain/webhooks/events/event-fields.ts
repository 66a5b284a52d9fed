import { Type } from 'typebox';
import { PILL_FIELDS } from '../../../schemas/pill-fields.ts';
import { EPOCH_PATTERN } from '../../../schemas/position.ts';
import { TIER_NAMES } from '../../access/tiers.ts';

const CURSOR_PATTERN = '^\\d{1,5}-\\d{1,16}$';
export const STRICT = { additionalProperties: false } as const;

/** Every time of a body. */
export const Time = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$',
  description: 'UTC with six decimals: 2026-11-20T01:02:03.011000Z',
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
    timestamp: Time,
    symbol: PILL_FIELDS.symbol,
    gross_spread_percent: PILL_FIELDS.gross_spread_percent,
    market_state: PILL_FIELDS.market_state,
    confidence: PILL_FIELDS.confidence,
    received_at: Time,
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
