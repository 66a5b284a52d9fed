import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { OVERLAP, SECRETS_MAX } from '../../../domain/webhooks/secrets/rotation.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { requesterOf } from '../server/caller.ts';
import { overlapOf } from '../server/schemas.ts';
import { Queued } from './delivery-schemas.ts';
import { refuseTests } from './endpoint-routes.ts';
import { findEndpoint, ROTATES, WRITES } from './rules.ts';
import { endpointParams as params, SecretInForceBody, SecretText } from './schemas.ts';
import type { Webhooks } from './webhook-deps.ts';

/** A challenge proves that an endpoint is the customer's; a secret proves that a message is ours. */
export function proofRoutes({ endpoints }: Pick<Webhooks, 'endpoints'>): RouteOptions[] {
  return [
    accountRoute({
      method: 'POST',
      url: '/api/webhooks/:id/test',
      ...WRITES,
      summary: 'Post an endpoint.test message',
      description:
        'At most 10 a minute per account. For the outcome, see ' +
        'GET /api/webhooks/{id}/attempts?message_id=…',
      params,
      answers: { 202: answerOf('Accepted; the message is posted within about a second.', Queued) },
      problems: ['object_not_found', 'state_conflict', 'too_many_attempts'],
      ifUnknown: 'See GET /api/webhooks/{id}/attempts; a second test does no harm.',
      async handle(request, reply) {
        const fit = ['enabled', 'pending'] as const;
        if ((await findEndpoint(endpoints, request, reply, fit)) === undefined) return reply;
        const endpointId = request.params.id;
        const sent = await endpoints.test({ ...requesterOf(request), endpointId });
        if (sent === undefined) return refuse(reply, 'object_not_found');
        if (sent.kind !== 'ok') return refuseTests(reply, sent);
        return reply.code(202).send({ message_id: sent.messageId });
      },
    }),
    accountRoute({
      method: 'POST',
      url: '/api/webhooks/:id/rotate-secret',
      ...ROTATES,
      summary: 'Create a new secret; the previous one keeps signing for the overlap',
      description:
        'During the overlap each message carries a signature of every secret, newest first. An ' +
        `overlap of 0 ends all others at once. At most ${SECRETS_MAX} secrets are in force.`,
      params,
      body: overlapOf(OVERLAP.maxS, OVERLAP.defaultS),
      bodyExample: { overlap_s: OVERLAP.defaultS },
      answers: {
        201: answerOf(
          'The new secret, which is never shown again, and all secrets in force, newest first.',
          Type.Object({ secret: SecretText, in_force: Type.Array(SecretInForceBody) }),
        ),
      },
      problems: ['object_not_found', 'webhook_secret_limit'],
      ifUnknown: 'Rotate again: the secret of the lost answer then enters its overlap or ends.',
      async handle(request, reply) {
        const endpointId = request.params.id;
        const { overlap_s: overlapS = OVERLAP.defaultS } = request.body;
        const rotated = await endpoints.rotate({ ...requesterOf(request), endpointId, overlapS });
        if (rotated === undefined) return refuse(reply, 'object_not_found');
        const in_force = rotated.inForce.map((secret) => bodyOf(SecretInForceBody, secret));
        if (rotated.kind === 'too_many') {
          return refuse(reply, 'webhook_secret_limit', { limit: SECRETS_MAX, in_force });
        }
        return reply.code(201).send({ secret: rotated.secret, in_force });
      },
    }),
  ];
}
