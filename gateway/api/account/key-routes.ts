import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { SCOPES } from '../../../lib/access/access.ts';
import {
  KEY_LIMITS,
  type KeyCreated,
  type KeyInvalid,
  type KeyRecord,
  type Keys,
} from '../../../lib/accounts/keys.ts';
import { refuse } from '../../http/refuse.ts';
import { SIGNED_IN } from '../access-rule.ts';
import { callerOf, requesterOf } from '../caller.ts';
import { accountEndpoint } from './account-endpoint.ts';
import { idOf, lineOf, MaybeTime, ScopeName, STRICT, Time } from './schemas.ts';

const Key = Type.Object({
  id: Type.String(),
  hint: Type.String({ description: 'Enough of the key to recognise it' }),
  name: Type.String(),
  scopes: Type.Array(ScopeName),
  allow_cidrs: Type.Array(Type.String(), { description: 'Empty = from everywhere' }),
  live: Type.Boolean(),
  created_at: Time,
  expires_at: MaybeTime,
  revoked_at: MaybeTime,
  replaced_by: Type.Union([Type.String(), Type.Null()]),
  last_used_at: MaybeTime,
  last_used_address: Type.Union([Type.String(), Type.Null()]),
});
const KEY_EXAMPLE = {
  id: 'key_k3yq7v2bqm9c',
  hint: 'pil_live_…ab12',
  name: 'desk 4',
  scopes: ['read', 'stream'],
  allow_cidrs: ['203.0.113.0/24'],
  live: true,
  created_at: '2026-11-20T01:02:03.000Z',
  expires_at: null,
  revoked_at: null,
  replaced_by: null,
  last_used_at: null,
  last_used_address: null,
};
const Name = lineOf(KEY_LIMITS.nameCharsMax);
const Scopes = Type.Array(ScopeName, { minItems: 1, maxItems: SCOPES.length, uniqueItems: true });
const Networks = Type.Array(Type.String({ minLength: 2, maxLength: 64 }), {
  maxItems: KEY_LIMITS.networksMax,
  description: 'IPv4 or IPv6 networks, e.g. 203.0.113.0/24',
});
const params = Type.Object({ id: idOf('key') }, STRICT);
const one = { 200: { description: 'The key.', schema: Key, example: KEY_EXAMPLE } };
const Shown = Type.Object({
  key: Type.String({ description: 'The key itself: shown this once' }),
  record: Key,
});
const shown = {
  201: {
    description: 'The new key; it is never shown again.',
    schema: Shown,
    example: { key: 'pil_live_<32 characters>_<6 characters>', record: KEY_EXAMPLE },
  },
};

/** API keys: by session alone, so that a leaked key cannot mint others. */
export function addKeyRoutes(app: FastifyInstance, { keys }: { readonly keys: Keys }): void {
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/keys',
      tag: 'keys',
      summary: 'Keys of the account, also those that ended in the last 30 days',
      access: SIGNED_IN,
      answers: {
        200: {
          description: 'Live ones first, newest first.',
          schema: Type.Object({ data: Type.Array(Key) }),
          example: { data: [KEY_EXAMPLE] },
        },
      },
      handle: async (request) => ({
        data: (await keys.list(callerOf(request).account.id)).map(keyBody),
      }),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/keys',
      tag: 'keys',
      summary: 'Make a key',
      access: SIGNED_IN,
      body: Type.Object(
        {
          name: Name,
          scopes: Type.Optional(Scopes),
          expires_at: Type.Optional(
            Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,6})?Z$' }),
          ),
          allow_cidrs: Type.Optional(Networks),
        },
        STRICT,
      ),
      bodyExample: { name: 'desk 4', scopes: ['read', 'stream'], allow_cidrs: ['203.0.113.0/24'] },
      answers: shown,
      problems: ['email_unverified', 'subscription_required', 'key_limit'],
      ifUnknown: 'GET /api/keys tells whether there is a new key: revoke it, and make another.',
      async handle(request, reply) {
        if (!callerOf(request).session!.isVerified) return refuse(reply, 'email_unverified');
        const { name, scopes = SCOPES, expires_at: expires, allow_cidrs } = request.body;
        const result = await keys.create({
          ...requesterOf(request),
          name,
          scopes,
          expiresAt: expires === undefined ? undefined : new Date(expires),
          allowCidrs: allow_cidrs,
        });
        return showKey(reply, result);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/keys/:id',
      tag: 'keys',
      summary: 'One key',
      access: SIGNED_IN,
      params,
      answers: one,
      problems: ['object_not_found'],
      handle: async (request, reply) =>
        answerKey(reply, await keys.get(callerOf(request).account.id, request.params.id)),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'PATCH',
      url: '/api/keys/:id',
      tag: 'keys',
      summary: 'Change name, scopes or allow-list; in force everywhere within a second',
      access: SIGNED_IN,
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
      answers: one,
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { name, scopes, allow_cidrs: allowCidrs } = request.body;
        const keyId = request.params.id;
        const change = { ...requesterOf(request), keyId, name, scopes, allowCidrs };
        const result = await keys.update(change);
        if (result?.kind === 'invalid') return refuseField(reply, result);
        return answerKey(reply, result?.record);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'DELETE',
      url: '/api/keys/:id',
      tag: 'keys',
      summary: 'Revoke: refused everywhere within a second, open sockets closed',
      access: SIGNED_IN,
      params,
      answers: one,
      problems: ['object_not_found'],
      handle: async (request, reply) =>
        answerKey(reply, await keys.revoke({ ...requesterOf(request), keyId: request.params.id })),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/keys/:id/rotate',
      tag: 'keys',
      summary: 'Make the next key; the old one goes on for the overlap',
      access: SIGNED_IN,
      params,
      body: Type.Object(
        {
          overlap_s: Type.Optional(
            Type.Integer({ minimum: 0, maximum: KEY_LIMITS.overlapSMax, default: 86_400 }),
          ),
        },
        STRICT,
      ),
      bodyExample: { overlap_s: 86_400 },
      answers: shown,
      problems: ['object_not_found', 'key_limit', 'state_conflict'],
      ifUnknown: 'GET /api/keys/{id}: with `replaced_by` it was rotated; then rotate that one.',
      async handle(request, reply) {
        const result = await keys.rotate({
          ...requesterOf(request),
          keyId: request.params.id,
          overlapS: request.body.overlap_s,
        });
        if (result === undefined) return refuse(reply, 'object_not_found');
        if (result.kind === 'ended') {
          return refuse(reply, 'state_conflict', {
            detail: 'The key has ended, or has a next one.',
          });
        }
        return showKey(reply, result);
      },
    }),
  );
}

function showKey(reply: FastifyReply, result: KeyCreated): FastifyReply {
  if (result.kind === 'invalid') return refuseField(reply, result);
  if (result.kind === 'subscription_required') return refuse(reply, 'subscription_required');
  if (result.kind === 'limit') return refuse(reply, 'key_limit');
  reply.code(201).header('cache-control', 'no-store');
  return reply.send({ key: result.key, record: keyBody(result.record) });
}

function answerKey(reply: FastifyReply, record: KeyRecord | undefined) {
  return record === undefined ? refuse(reply, 'object_not_found') : keyBody(record);
}

function refuseField(reply: FastifyReply, { field, reason }: KeyInvalid): FastifyReply {
  const errors = [{ pointer: `#/${field}`, code: `${field}_invalid`, detail: reason }];
  return refuse(reply, 'body_invalid', { errors });
}

function keyBody(key: KeyRecord) {
  return {
    id: key.id,
    hint: key.hint,
    name: key.name,
    scopes: key.scopes,
    allow_cidrs: key.allowCidrs,
    live: key.live,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    replaced_by: key.replacedBy ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    last_used_address: key.lastUsedAddress ?? null,
  };
}
