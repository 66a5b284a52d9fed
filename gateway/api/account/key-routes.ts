import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { DEFAULT_SCOPES, SCOPES } from '../../../domain/access/scopes.ts';
import {
  KEY_LIMITS,
  type KeyCreated,
  type KeyInvalid,
  type KeyRecord,
  type Keys,
} from '../../../domain/accounts/keys.ts';
import { answerOf, bodyOf, fromBody } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { noTierRefusal } from '../server/authorize.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import {
  DeskName,
  idOf,
  lineOf,
  MaybeTime,
  orNull,
  overlapOf,
  ScopeName,
  STRICT,
  Time,
  timeOf,
} from '../server/schemas.ts';

const KEYS = { tag: 'keys', access: signedIn('keys:read') } as const;
const KEY_CHANGES = { tag: 'keys', access: withFreshFactor(signedIn('keys:change')) } as const;
/** Without a fresh second factor: a leaked key can be ended at once. */
const REVOKES = { tag: 'keys', access: signedIn('keys:change') } as const;
const Key = Type.Object({
  id: Type.String({ examples: ['key_k3yq7v2bqm9c'] }),
  hint: Type.String({
    description: 'The end of the key, enough to recognise it',
    examples: ['pil_live_…ab12'],
  }),
  name: Type.String({ examples: ['desk 4'] }),
  scopes: Type.Array(ScopeName),
  allow_cidrs: Type.Array(Type.String({ examples: ['203.0.113.0/24'] }), {
    description: 'Empty = any address',
  }),
  desk: orNull(Type.String(), 'Desk whose limits hold for the key'),
  live: Type.Boolean({ examples: [true] }),
  created_at: Time,
  expires_at: MaybeTime,
  revoked_at: MaybeTime,
  replaced_by: orNull(Type.String()),
  last_used_at: MaybeTime,
  last_used_address: orNull(Type.String()),
});
const Name = lineOf(KEY_LIMITS.nameCharsMax);
const Scopes = Type.Array(ScopeName, {
  minItems: 1,
  maxItems: SCOPES.length,
  uniqueItems: true,
  default: [...DEFAULT_SCOPES],
  description:
    'read: every read that keys may make, nothing else; stream: sockets and their tickets; exports: ' +
    'create, read, download and remove exports; ' +
    'webhooks:read: endpoints and deliveries alone; webhooks:write: also create, change, delete ' +
    'and test endpoints, and post messages again; support: open tickets',
});
const Networks = Type.Array(Type.String({ minLength: 2, maxLength: 64 }), {
  maxItems: KEY_LIMITS.networksMax,
  description: 'IPv4 or IPv6 networks, e.g. 203.0.113.0/24',
});
const params = Type.Object({ id: idOf('key') }, STRICT);
const keyAnswer = { 200: answerOf('The key.', Key) };
const NewKey = Type.Object({
  key: Type.String({
    description: 'The key itself, shown only this once',
    examples: ['pil_live_<32 characters>_<6 characters>'],
  }),
  record: Key,
});
const newKeyAnswer = { 201: answerOf('The new key; it is never shown again.', NewKey) };

/** API keys: by session only, so that a leaked key cannot create others. */
export function keyRoutes({ keys }: { readonly keys: Keys }): RouteOptions[] {
  return [
    accountRoute({
      method: 'GET',
      url: '/api/keys',
      ...KEYS,
      summary: 'List the keys, including those that ended in the last 30 days',
      answers: {
        200: answerOf(
          'Live keys first, then newest first.',
          Type.Object({ data: Type.Array(Key) }),
        ),
      },
      handle: async (request) => ({
        data: (await keys.list(callerOf(request).account.id)).map((key) => bodyOf(Key, key)),
      }),
    }),
    createKey(keys),
    accountRoute({
      method: 'GET',
      url: '/api/keys/:id',
      ...KEYS,
      summary: 'Read a key',
      params,
      answers: keyAnswer,
      problems: ['object_not_found'],
      handle: async (request, reply) =>
        answerKey(reply, await keys.get(callerOf(request).account.id, request.params.id)),
    }),
    accountRoute({
      method: 'PATCH',
      url: '/api/keys/:id',
      ...KEY_CHANGES,
      summary: 'Change name, scopes or allow-list; in effect everywhere within a second',
      params,
      body: Type.Object(
        {
          name: Type.Optional(Name),
          scopes: Type.Optional(Scopes),
          allow_cidrs: Type.Optional(Networks),
        },
        { ...STRICT, minProperties: 1 },
      ),
      bodyExample: { name: 'desk 5' },
      answers: keyAnswer,
      problems: ['object_not_found'],
      async handle(request, reply) {
        const keyId = request.params.id;
        const change = { ...requesterOf(request), ...fromBody(request.body), keyId };
        const result = await keys.update(change);
        if (result?.kind === 'invalid') return refuseField(reply, result);
        return answerKey(reply, result?.record);
      },
    }),
    accountRoute({
      method: 'DELETE',
      url: '/api/keys/:id',
      ...REVOKES,
      summary: 'Revoke a key: refused everywhere within a second, its open sockets closed',
      params,
      answers: keyAnswer,
      problems: ['object_not_found'],
      handle: async (request, reply) =>
        answerKey(reply, await keys.revoke({ ...requesterOf(request), keyId: request.params.id })),
    }),
    rotateKey(keys),
  ];
}

function createKey(keys: Keys): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/keys',
    ...KEY_CHANGES,
    summary: 'Create a key',
    body: Type.Object(
      {
        name: Name,
        scopes: Type.Optional(Scopes),
        expires_at: Type.Optional(timeOf('When the key ends')),
        allow_cidrs: Type.Optional(Networks),
        desk: Type.Optional(DeskName),
      },
      STRICT,
    ),
    bodyExample: { name: 'desk 4', scopes: ['read', 'stream'], allow_cidrs: ['203.0.113.0/24'] },
    answers: newKeyAnswer,
    problems: [
      ...(['email_unverified', 'subscription_required', 'account_suspended'] as const),
      ...(['key_limit', 'too_many_attempts'] as const),
    ],
    ifUnknown: 'If GET /api/keys lists a new key, revoke it and create another.',
    async handle(request, reply) {
      if (!callerOf(request).session!.isVerified) return refuse(reply, 'email_unverified');
      const { scopes = DEFAULT_SCOPES, expiresAt: expiry, ...named } = fromBody(request.body);
      const expiresAt = expiry === undefined ? undefined : new Date(expiry);
      const wanted = { ...requesterOf(request), ...named, scopes, expiresAt };
      return answerNewKey(request, reply, await keys.create(wanted));
    },
  });
}

function rotateKey(keys: Keys): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/keys/:id/rotate',
    ...KEY_CHANGES,
    summary: 'Create a successor; the old key stays valid for the overlap',
    params,
    body: overlapOf(KEY_LIMITS.overlapSMax, KEY_LIMITS.overlapSDefault),
    bodyExample: { overlap_s: 86_400 },
    answers: newKeyAnswer,
    problems: ['object_not_found', 'key_limit', 'state_conflict', 'too_many_attempts'],
    ifUnknown:
      'If GET /api/keys/{id} has `replaced_by`, the key was rotated; rotate its successor.',
    async handle(request, reply) {
      const keyId = request.params.id;
      const rotation = { ...requesterOf(request), ...fromBody(request.body), keyId };
      const result = await keys.rotate(rotation);
      if (result === undefined) return refuse(reply, 'object_not_found');
      if (result.kind === 'ended') {
        const detail = 'The key has ended or already has a successor.';
        return refuse(reply, 'state_conflict', { detail });
      }
      return answerNewKey(request, reply, result);
    },
  });
}

function answerNewKey(
  request: FastifyRequest,
  reply: FastifyReply,
  result: KeyCreated,
): FastifyReply {
  if (result.kind === 'invalid') return refuseField(reply, result);
  if (result.kind === 'subscription_required') {
    return refuse(reply, ...noTierRefusal(callerOf(request).account));
  }
  if (result.kind === 'limit') return refuse(reply, 'key_limit');
  if (result.kind === 'too_many_made') {
    const detail = `${KEY_LIMITS.madePerHourMax} keys were created within an hour.`;
    return refuse(reply, 'too_many_attempts', { detail, retry_after_s: result.retryAfterS });
  }
  reply.code(201);
  return reply.send({ key: result.key, record: bodyOf(Key, result.record) });
}

function answerKey(reply: FastifyReply, record: KeyRecord | undefined) {
  return record === undefined ? refuse(reply, 'object_not_found') : bodyOf(Key, record);
}

function refuseField(reply: FastifyReply, { field, reason }: KeyInvalid): FastifyReply {
  return refuseBody(reply, [bodyFault(`/${field}`, `${field}_invalid`, reason)]);
}
