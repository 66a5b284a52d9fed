import { Type } from 'typebox';
import type { Destination } from '../../../domain/destinations/destination.ts';
import type { AnyDestinationType } from '../../../domain/destinations/destination-type.ts';
import { DESTINATION_LIMITS } from '../../../domain/destinations/limits.ts';
import { idOf, lineOf, MaybeTime, orNull, STRICT, Time } from '../server/schemas.ts';
import { FILTER } from '../webhooks/schemas.ts';

/** Room for a thousand symbols. */
export const DESTINATION_BODY_BYTES_MAX = 64 * 1024;

export const destinationParams = Type.Object({ id: idOf('dst') }, STRICT);
const Name = lineOf(DESTINATION_LIMITS.nameCharsMax);

/** The body that creates a destination of a type, from the schemas of the type. */
export function newDestination({ settings, secrets }: AnyDestinationType) {
  const start = Type.Enum(['now', 'earliest'], {
    default: 'now',
    description: 'now: pills from its creation on; earliest: all pills that the log holds',
  });
  return Type.Object(
    { name: Name, settings, secrets, ...FILTER, start: Type.Optional(start) },
    STRICT,
  );
}

/** The body that changes one: settings member by member, credentials as a whole. */
export function destinationChanges({ settings, secrets }: AnyDestinationType) {
  return Type.Object(
    {
      name: Type.Optional(Name),
      settings: Type.Optional(Type.Object(Type.Partial(settings).properties, STRICT)),
      secrets: Type.Optional(secrets),
      ...FILTER,
    },
    { ...STRICT, minProperties: 1 },
  );
}

const MaybeNumber = orNull(Type.Number());

export const DestinationBody = Type.Object({
  id: Type.String({ examples: ['dst_k3yq7v2bqm9c'] }),
  name: Type.String({ examples: ['lake'] }),
  type: Type.String({ examples: ['s3'] }),
  settings: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'As given; GET /api/destinations/types has their schema',
      examples: [{}],
    },
  ),
  credential_version: Type.Integer({
    description: 'Rises with each change of the credentials, which are never shown',
    examples: [1],
  }),
  credential_changed_at: Time,
  symbols: Type.Array(Type.String(), { examples: [['7203.T']] }),
  min_confidence: MaybeNumber,
  min_spread: MaybeNumber,
  max_spread: MaybeNumber,
  states: Type.Array(Type.String(), { examples: [[]] }),
  backfill: Type.Boolean(),
  state: Type.Enum(['active', 'failing', 'platform_fault', 'paused', 'ended'], {
    description:
      'failing: the receiving system fails, and deliveries are repeated; platform_fault: we cannot ' +
      'deliver, and nothing is wrong on your side; ended: the tier of the account ended, resume it ' +
      'once the tier is back: pills in between are not delivered',
  }),
  failing_since: MaybeTime,
  last_delivered_at: MaybeTime,
  position: orNull(
    Type.String({ examples: ['e1:0-41,1-7'] }),
    'Pills up to and including it are delivered, or excluded by the filter',
  ),
  lag_records: orNull(Type.Integer({ examples: [0] })),
  delivered_until: MaybeTime,
  created_at: Time,
  updated_at: Time,
});

/** What a caller sees of the state. */
export function stateOf({ pausedBy, faultSince, failingSince }: Destination): string {
  if (pausedBy !== undefined) return pausedBy === 'owner' ? 'paused' : 'ended';
  if (faultSince !== undefined) return 'platform_fault';
  return failingSince === undefined ? 'active' : 'failing';
}

export const AttemptBody = Type.Object({
  at: Time,
  outcome: Type.Enum(['delivered', 'failed']),
  reason: orNull(Type.String({ examples: [null] }), 'Why they failed, in one word'),
  upstream_status: orNull(Type.Integer({ examples: [200] }), 'What the receiving system answered'),
  detail: orNull(Type.String({ examples: [null] }), 'What to do'),
  attempts: Type.Integer({ examples: [1], description: 'Equal attempts of 5 s are one entry' }),
  pills: Type.Integer({ examples: [812] }),
  bytes: Type.Integer({ examples: [40_123] }),
  latency_ms: Type.Integer({ examples: [35], description: 'The longest of them' }),
});

export const TypeBody = Type.Object({
  name: Type.String({ examples: ['s3'] }),
  title: Type.String({ examples: ['S3-compatible bucket'] }),
  instructions: Type.String({ examples: ['1. Create a bucket …'], description: 'Markdown' }),
  settings: Type.Object(
    {},
    { additionalProperties: true, description: 'JSON schema', examples: [{}] },
  ),
  secrets: Type.Object(
    {},
    { additionalProperties: true, description: 'JSON schema', examples: [{}] },
  ),
  fixed: Type.Array(Type.String(), {
    description: 'Settings that never change',
    examples: [['format']],
  }),
});
