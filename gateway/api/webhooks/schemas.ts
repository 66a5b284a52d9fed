import { Type } from 'typebox';
import { HEADER_LIMITS } from '../../../lib/webhooks/endpoint-check.ts';
import { SETTING_DEFAULTS, SETTING_LIMITS } from '../../../lib/webhooks/endpoint-settings.ts';
import { EVENT_TYPES } from '../../../lib/webhooks/event-types.ts';
import { SPREAD_MAX } from '../../../schemas/pill.ts';
import { idOf, lineOrNothing, MaybeTime, STRICT, Time } from '../account/schemas.ts';
import { orNull } from '../or-null.ts';

const L = SETTING_LIMITS;

/** A thousand symbols and twenty headers fit. */
export const WEBHOOK_BODY_BYTES_MAX = 64 * 1024;

export const EndpointId = idOf('whe');
export const endpointParams = Type.Object({ id: EndpointId }, STRICT);

const EventTypes = Type.Array(Type.Enum([...EVENT_TYPES]), {
  minItems: 1,
  maxItems: EVENT_TYPES.length,
  uniqueItems: true,
  description: 'Who asks for pill.published gets pills.published too: several pills as one message',
});
const Spread = orNull(Type.Number({ minimum: -SPREAD_MAX, maximum: SPREAD_MAX }));
const Url = Type.String({
  minLength: 1,
  maxLength: L.urlCharsMax,
  description: 'https, at port 443 or 8443, with an address of the public internet',
});

const OPTIONAL = {
  description: Type.Optional(lineOrNothing(L.descriptionCharsMax)),
  symbols: Type.Optional(
    Type.Array(Type.String({ maxLength: 32 }), {
      maxItems: L.symbolsMax,
      uniqueItems: true,
      description: 'Pills of these alone; empty = all but test symbols, which must be named',
    }),
  ),
  min_confidence: Type.Optional(orNull(Type.Number({ minimum: 0, maximum: L.confidenceMax }))),
  min_spread: Type.Optional(Spread),
  max_spread: Type.Optional(Spread),
  states: Type.Optional(
    Type.Array(Type.String({ maxLength: L.stateCharsMax }), {
      maxItems: L.statesMax,
      uniqueItems: true,
      description: 'Pills of these market states alone; empty = all',
    }),
  ),
  backfill: Type.Optional(Type.Boolean({ description: 'Whether backfill pills are posted too' })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: HEADER_LIMITS.valueCharsMax }), {
      maxProperties: HEADER_LIMITS.countMax,
      description: 'Sent with each message. Kept sealed: only their names are shown again',
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
      description: 'A pill older than this is not posted any more, but listed as expired',
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
  min_confidence: 0.8,
  headers: { Authorization: 'Bearer <yours>' },
};

const State = Type.Enum(['pending', 'enabled', 'disabled', 'over_limit', 'not_entitled'], {
  description:
    'What it does now. pending: gets test messages alone, until an answer holds their challenge; ' +
    'over_limit: the tier has fewer places than there are endpoints, and the oldest have them; ' +
    'not_entitled: the account has no tier with webhooks now',
});
const MaybeNumber = orNull(Type.Number());

export const WebhookEndpointBody = Type.Object({
  id: Type.String(),
  url: Type.String(),
  description: Type.String(),
  event_types: Type.Array(Type.String()),
  symbols: Type.Array(Type.String()),
  min_confidence: MaybeNumber,
  min_spread: MaybeNumber,
  max_spread: MaybeNumber,
  states: Type.Array(Type.String()),
  backfill: Type.Boolean(),
  header_names: Type.Array(Type.String()),
  rate_per_s: Type.Integer(),
  max_age_s: Type.Integer(),
  state: State,
  status: Type.Enum(['pending', 'enabled', 'disabled']),
  disabled_reason: orNull(
    Type.Enum(['owner', 'failing', 'gone'], {
      description: 'gone: it answered 410; failing: nothing was delivered for too long',
    }),
  ),
  failing_since: MaybeTime,
  resting_until: MaybeTime,
  backlog_full_since: MaybeTime,
  created_at: Time,
  updated_at: Time,
});
export const ENDPOINT_EXAMPLE = {
  id: 'whe_k3yq7v2bqm9c',
  url: 'https://example.com/hooks/pillole',
  description: '',
  event_types: ['pill.published', 'quota.warning'],
  symbols: ['7203.T', '9984.T'],
  min_confidence: 0.8,
  min_spread: null,
  max_spread: null,
  states: [],
  backfill: false,
  header_names: ['Authorization'],
  rate_per_s: 100,
  max_age_s: 3_600,
  state: 'enabled',
  status: 'enabled',
  disabled_reason: null,
  failing_since: null,
  resting_until: null,
  backlog_full_since: null,
  created_at: '2026-11-20T01:02:03.000Z',
  updated_at: '2026-11-20T01:02:03.000Z',
};

export const SecretText = Type.String({
  description: '`whsec_` and base64: what signatures are made with. Shown this once',
});
export const SECRET_EXAMPLE = 'whsec_<base64 of 32 bytes>';
export const SecretInForceBody = Type.Object({ created_at: Time, expires_at: MaybeTime });
