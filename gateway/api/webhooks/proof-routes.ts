import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { OVERLAP, SECRETS_MAX } from '../../../lib/webhooks/rotation.ts';
import { refuse } from '../../http/refuse.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { STRICT } from '../account/schemas.ts';
import { callerOf, requesterOf } from '../caller.ts';
import { secretBody } from './endpoint-body.ts';
import { refuseTests } from './endpoint-routes.ts';
import { CHANGES, DELIVERS, refuseState } from './rules.ts';
import {
  endpointParams as params,
  SECRET_EXAMPLE,
  SecretInForceBody,
  SecretText,
} from './schemas.ts';
import type { Webhooks } from './webhooks.ts';

/** How each side knows the other: a challenge proves the endpoint, a secret proves the sender. */
export function addProofRoutes(
  app: FastifyInstance,
  { endpoints }: Pick<Webhooks, 'endpoints'>,
): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/webhooks/:id/test',
      tag: 'webhooks',
      summary: 'Post an endpoint.test',
      description:
        'At most 10 a minute of an account. What came of it is at ' +
        'GET /api/webhooks/{id}/attempts?message_id=…',
      access: DELIVERS,
      params,
      answers: {
        202: {
          description: 'It is posted within a second or so.',
          schema: Type.Object({ message_id: Type.String() }),
          example: { message_id: 'msg_k3yq7v2bqm9c' },
        },
      },
      problems: ['object_not_found', 'state_conflict', 'too_many_attempts'],
      ifUnknown: 'GET /api/webhooks/{id}/attempts tells; a second test does no harm.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const endpointId = request.params.id;
        const found = await endpoints.get(account.id, endpointId);
        if (found === undefined) return refuse(reply, 'object_not_found');
        const refused = refuseState(reply, found, account, ['enabled', 'pending']);
        if (refused !== undefined) return refused;
        const sent = await endpoints.test({ ...requesterOf(request), endpointId });
        if (sent === undefined) return refuse(reply, 'object_not_found');
        if (sent.kind !== 'ok') return refuseTests(reply, sent);
        return reply.code(202).send({ message_id: sent.messageId });
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/webhooks/:id/rotate-secret',
      tag: 'webhooks',
      summary: 'Make the next secret; the one before signs on for the overlap',
      description:
        'During the overlap each message carries a signature of every secret, the newest first. ' +
        `0 ends all others at once. At most ${SECRETS_MAX} are in force at a time.`,
      access: CHANGES,
      params,
      body: Type.Object(
        {
          overlap_s: Type.Optional(
            Type.Integer({ minimum: 0, maximum: OVERLAP.maxS, default: OVERLAP.defaultS }),
          ),
        },
        STRICT,
      ),
      bodyExample: { overlap_s: OVERLAP.defaultS },
      answers: {
        201: {
          description: 'The new secret, never shown again; and all in force, the newest first.',
          schema: Type.Object({ secret: SecretText, in_force: Type.Array(SecretInForceBody) }),
          example: {
            secret: SECRET_EXAMPLE,
            in_force: [
              { created_at: '2026-11-21T01:02:03.000Z', expires_at: null },
              {
                created_at: '2026-11-20T01:02:03.000Z',
                expires_at: '2026-11-22T01:02:03.000Z',
              },
            ],
          },
        },
      },
      problems: ['object_not_found', 'webhook_secret_limit'],
      ifUnknown: 'Rotate again: what the lost answer held is then in its overlap, or over.',
      async handle(request, reply) {
        const endpointId = request.params.id;
        const { overlap_s: overlapS = OVERLAP.defaultS } = request.body;
        const rotated = await endpoints.rotate({ ...requesterOf(request), endpointId, overlapS });
        if (rotated === undefined) return refuse(reply, 'object_not_found');
        const in_force = rotated.inForce.map(secretBody);
        if (rotated.kind === 'too_many') {
          return refuse(reply, 'webhook_secret_limit', { limit: SECRETS_MAX, in_force });
        }
        reply.code(201).header('cache-control', 'no-store');
        return reply.send({ secret: rotated.secret, in_force });
      },
    }),
  );
}
