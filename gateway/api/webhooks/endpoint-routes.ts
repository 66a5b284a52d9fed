import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { tierOf } from '../../../lib/access/entitlement.ts';
import { TIERS } from '../../../lib/access/tiers.ts';
import {
  ENDPOINT_LIMITS,
  type EndpointChanged,
  type EndpointCreated,
} from '../../../lib/webhooks/endpoints.ts';
import { refuse } from '../../http/refuse.ts';
import { SIGNED_IN } from '../access-rule.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { STRICT } from '../account/schemas.ts';
import { callerOf, requesterOf } from '../caller.ts';
import { orNull } from '../or-null.ts';
import { changedSettings, endpointBody, newSettings } from './endpoint-body.ts';
import { CHANGES, LOOKS } from './rules.ts';
import {
  ENDPOINT_EXAMPLE,
  EndpointChanges,
  EndpointId,
  NEW_ENDPOINT_EXAMPLE,
  NewEndpoint,
  endpointParams as params,
  SECRET_EXAMPLE,
  SecretText,
  WEBHOOK_BODY_BYTES_MAX,
  WebhookEndpointBody,
} from './schemas.ts';
import type { Webhooks } from './webhooks.ts';

const one = (description: string) => ({
  200: { description, schema: WebhookEndpointBody, example: ENDPOINT_EXAMPLE },
});
const { pageMax, pageDefault, madePerHourMax } = ENDPOINT_LIMITS;

/** Webhook endpoints: read by key or session, changed by session alone. */
export function addEndpointRoutes(
  app: FastifyInstance,
  { endpoints }: Pick<Webhooks, 'endpoints'>,
): void {
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/webhooks',
      tag: 'webhooks',
      summary: 'Webhook endpoints of the account, oldest first',
      description: 'Also after a downgrade; `state` tells which of them work.',
      access: LOOKS,
      query: Type.Object(
        {
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: pageMax, default: pageDefault }),
          ),
          after: Type.Optional(EndpointId),
        },
        STRICT,
      ),
      answers: {
        200: {
          description: 'One page; `limit` is how many the tier has, null = as many as you like.',
          schema: Type.Object({
            data: Type.Array(WebhookEndpointBody),
            limit: orNull(Type.Integer()),
            next: orNull(Type.String({ description: '`after` of the next page' })),
          }),
          example: { data: [ENDPOINT_EXAMPLE], limit: 5, next: null },
        },
      },
      async handle(request) {
        const { account } = callerOf(request);
        const { limit = pageDefault, after } = request.query;
        const found = await endpoints.list(account.id, { limit, after });
        const tier = tierOf(account, Date.now());
        return {
          data: found.map((endpoint) => endpointBody(endpoint, account)),
          limit: tier === undefined ? 0 : TIERS[tier].webhooks,
          next: found.length < limit ? null : found.at(-1)!.id,
        };
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/webhooks',
      tag: 'webhooks',
      summary: 'Make an endpoint; it is pending until it has answered a challenge',
      description:
        'An `endpoint.test` is posted at once: a 2xx answer that contains `data.challenge` of its ' +
        'body, for example because it repeats the body, enables the endpoint. At most ' +
        `${madePerHourMax} are made within an hour.`,
      access: CHANGES,
      body: NewEndpoint,
      bodyExample: NEW_ENDPOINT_EXAMPLE,
      bodyBytesMax: WEBHOOK_BODY_BYTES_MAX,
      answers: {
        201: {
          description: 'The new endpoint, and its secret, which is never shown again.',
          schema: Type.Object({ endpoint: WebhookEndpointBody, secret: SecretText }),
          example: {
            endpoint: { ...ENDPOINT_EXAMPLE, state: 'pending', status: 'pending' },
            secret: SECRET_EXAMPLE,
          },
        },
      },
      problems: ['webhook_limit', 'too_many_attempts'],
      ifUnknown:
        'GET /api/webhooks tells whether there is a new endpoint; rotate its secret to have one.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const settings = newSettings(request.body);
        const made = await endpoints.create({ ...requesterOf(request), settings });
        if (made.kind !== 'ok') return refuseChange(reply, made);
        reply.code(201).header('cache-control', 'no-store');
        return reply.send({
          endpoint: endpointBody(made.endpoint, account),
          secret: made.secret,
        });
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/webhooks/:id',
      tag: 'webhooks',
      summary: 'One endpoint',
      access: LOOKS,
      params,
      answers: one('The endpoint.'),
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { account } = callerOf(request);
        const found = await endpoints.get(account.id, request.params.id);
        return found === undefined
          ? refuse(reply, 'object_not_found')
          : endpointBody(found, account);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'PATCH',
      url: '/api/webhooks/:id',
      tag: 'webhooks',
      summary: 'Change, disable or enable it; in force within a second',
      description:
        'What is left out stays; null takes a bound away; `headers` and lists are replaced as a ' +
        'whole. Another URL makes it pending, with a new challenge, also where it was disabled. ' +
        'One that you disabled is enabled at once; one that failed or was gone is pending first, ' +
        'and must answer a new challenge.',
      access: CHANGES,
      params,
      body: EndpointChanges,
      bodyExample: { min_confidence: 0.9, status: 'enabled' },
      bodyBytesMax: WEBHOOK_BODY_BYTES_MAX,
      answers: one('As it is now.'),
      problems: ['object_not_found', 'state_conflict', 'too_many_attempts'],
      ifUnknown: 'GET /api/webhooks/{id} tells how it is now.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const { status, ...body } = request.body;
        const changed = await endpoints.change({
          ...requesterOf(request),
          ...{ endpointId: request.params.id, settings: changedSettings(body), status },
        });
        if (changed === undefined) return refuse(reply, 'object_not_found');
        if (changed.kind !== 'ok') return refuseChange(reply, changed);
        return endpointBody(changed.endpoint, account);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'DELETE',
      url: '/api/webhooks/:id',
      tag: 'webhooks',
      summary: 'Delete it, with all that waits for it',
      access: SIGNED_IN,
      params,
      answers: one('As it was last.'),
      problems: ['object_not_found'],
      ifUnknown: 'GET /api/webhooks/{id} answers 404 when it was deleted.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const endpointId = request.params.id;
        const removed = await endpoints.remove({ ...requesterOf(request), endpointId });
        return removed === undefined
          ? refuse(reply, 'object_not_found')
          : endpointBody(removed, account);
      },
    }),
  );
}

type Refused = Exclude<EndpointCreated, { kind: 'ok' }> | Exclude<EndpointChanged, { kind: 'ok' }>;

function refuseChange(reply: FastifyReply, refused: Refused): FastifyReply {
  switch (refused.kind) {
    case 'invalid':
      return refuse(reply, 'body_invalid', { errors: refused.faults });
    case 'limit':
      return refuse(reply, 'webhook_limit', { limit: refused.limit });
    case 'conflict':
      return refuse(reply, 'state_conflict', { detail: refused.detail });
    case 'not_entitled':
      return refuse(reply, 'subscription_required');
    case 'too_many_made':
      return refuse(reply, 'too_many_attempts', {
        detail: `${madePerHourMax} endpoints were made within an hour.`,
        retry_after_s: refused.retryAfterS,
      });
    case 'too_many_tests':
      return refuseTests(reply, refused);
  }
}

/** Also changes of the URL, and enabling what failed, have a test message sent. */
export function refuseTests(
  reply: FastifyReply,
  { retryAfterS }: { readonly retryAfterS: number },
): FastifyReply {
  const detail = 'At most 10 test messages a minute are sent for an account.';
  return refuse(reply, 'too_many_attempts', { detail, retry_after_s: retryAfterS });
}
