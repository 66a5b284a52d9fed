import { Type } from 'typebox';
import { HEADER_LIMITS } from '../../../domain/webhooks/endpoints/endpoint-check.ts';
import {
  SETTING_DEFAULTS,
  SETTING_LIMITS,
} from '../../../domain/webhooks/endpoints/endpoint-settings.ts';
import { EVENT_TYPES } from '../../../domain/webhooks/events/event-catalogue.ts';
import { SPREAD_MAX } from '../../../schemas/pill.ts';
import { idOf, lineOrNothing, MaybeTime, orNull, STRICT, Time } from '../server/schemas.ts';

const L = SETTING_LIMITS;

/** Room for a thousand symbols and twenty headers. */
export const WEBHOOK_BODY_BYTES_MAX = 64 * 1024;

export const EndpointId = idOf('whe');
export const endpointParams = Type.Object({ id: EndpointId }, STRICT);

const EventTypes = Type.Array(Type.Enum([...EVENT_TYPES]), {
  minItems: 1,
  maxItems: EVENT_TYPES.length,
  uniqueItems: true,
  description:
    'pill.published includes pills.published, which carries several pills in one message',
});
const Spread = orNull(Type.Number({ minimum: -SPREAD_MAX, maximum: SPREAD_MAX }));
const Url = Type.String({
  minLength: 1,
  maxLength: L.urlCharsMax,
  description: 'https on port 443 or 8443, at an address of the public internet',
});

/** Conditions of a pill, as destinations set them too. */
export const FILTER = {
  symbols: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: L.symbolsMax,
      uniqueItems: true,
      description:
        'Only pills of these symbols; empty = all except test symbols, which must be named',
    }),
  ),
  min_confidence: Type.Optional(orNull(Type.Number({ minimum: 0, maximum: L.confidenceMax }))),
  min_spread: Type.Optional(Spread),
  max_spread: Type.Optional(Spread),
  states: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: L.statesMax,
      uniqueItems: true,
      description: 'Only pills of these market states; empty = all',
    }),
  ),
  backfill: Type.Optional(Type.Boolean({ description: 'Whether backfill pills are included' })),
};

const OPTIONAL = {
  description: Type.Optional(lineOrNothing(L.descriptionCharsMax)),
  ...FILTER,
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: HEADER_LIMITS.valueCharsMax }), {
      maxProperties: HEADER_LIMITS.countMax,
      description: 'Sent with each message. Stored encrypted: only their names are shown again',
    }),
  ),
  rate_per_s: Type.Optional(
    Type.Integer({ minimum: 1, maximum: L.ratePerSMax, default: SETTING_DEFAULTS.ratePerS }),
  ),
  max_age_s: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: L.maxAgeSMax,
      default: SETTING_DEFAULTS.maxAgeS,
      description: 'Older pills are no longer posted, but listed as expired',
    }),
  ),
};

export const NewEndpoint = Type.Object({ url: Url, event_types: EventTypes, ...OPTIONAL }, STRICT);
export const EndpointChanges = Type.Object(
  {
    url: Type.Optional(Url),
    event_types: Type.Optional(EventTypes),
    ...OPTIONAL,
    status: Type.Optional(Type.Enum(['enabled', 'disabled'])),
  },
  { ...STRICT, minProperties: 1 },
);
export const NEW_ENDPOINT_EXAMPLE = {
  url: 'https://example.com/hooks/pillole',
  event_types: ['pill.published', 'quota.warning'] as ('pill.published' | 'quota.warning')[],
  symbols: ['7203.T', '9984.T'],
  min_confidence: 80,
  headers: { Authorization: 'Bearer <yours>' },
};

const State = Type.Enum(['pending', 'enabled', 'disabled', 'over_limit', 'not_entitled'], {
  examples: ['enabled'],
  description:
    'The current state. pending: receives only test messages until it answers with their ' +
    'challenge; over_limit: the account has more endpoints than its tier allows, and the oldest ' +
    'take precedence; not_entitled: the tier does not include webhooks, or the ' +
    'account has no access (GET /api/account says why); no pills are kept for the endpoint meanwhile',
});
const MaybeNumber = orNull(Type.Number());

export const WebhookEndpointBody = Type.Object({
  id: Type.String({ examples: ['whe_k3yq7v2bqm9c'] }),
  url: Type.String({
    examples: [NEW_ENDPOINT_EXAMPLE.url],
    description:
      'Queries, and path segments of 20 characters or more, may be credentials: keys without ' +
      'webhooks:write see `***` instead',
  }),
  url_redacted: Type.Boolean({ examples: [false] }),
  description: Type.String({ examples: [''] }),
  event_types: Type.Array(Type.String(), { examples: [NEW_ENDPOINT_EXAMPLE.event_types] }),
  symbols: Type.Array(Type.String(), { examples: [NEW_ENDPOINT_EXAMPLE.symbols] }),
  min_confidence: orNull(Type.Number({ examples: [NEW_ENDPOINT_EXAMPLE.min_confidence] })),
  min_spread: MaybeNumber,
  max_spread: MaybeNumber,
  states: Type.Array(Type.String(), { examples: [[]] }),
  backfill: Type.Boolean(),
  header_names: Type.Array(Type.String({ examples: ['Authorization'] })),
  rate_per_s: Type.Integer({ examples: [SETTING_DEFAULTS.ratePerS] }),
  max_age_s: Type.Integer({ examples: [SETTING_DEFAULTS.maxAgeS] }),
  state: State,
  status: Type.Enum(['pending', 'enabled', 'disabled'], { examples: ['enabled'] }),
  disabled_reason: orNull(
    Type.Enum(['owner', 'failing', 'gone'], {
      description: 'gone: the endpoint answered 410; failing: nothing was delivered for too long',
    }),
  ),
  failing_since: MaybeTime,
  resting_until: MaybeTime,
  backlog_full_since: MaybeTime,
  created_at: Time,
  updated_at: Time,
});

export const SecretText = Type.String({
  description: '`whsec_` and base64: the signing secret, shown only this once',
  examples: ['whsec_<base64 of 32 bytes>'],
});
export const SecretInForceBody = Type.Object({ created_at: Time, expires_at: MaybeTime });
