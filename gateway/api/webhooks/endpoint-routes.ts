import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { tierOf } from '../../../domain/access/entitlement.ts';
import { TIERS } from '../../../domain/access/tiers.ts';
import {
  ENDPOINT_LIMITS,
  type EndpointChanged,
  type EndpointCreated,
  type Endpoints,
} from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import { SETTING_DEFAULTS } from '../../../domain/webhooks/endpoints/endpoint-settings.ts';
import { answerOf, fromBody } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { noTierRefusal } from '../server/authorize.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { refuseBody } from '../server/json-body.ts';
import { nextPage } from '../server/next-page.ts';
import { limitOf, Next, orNull, STRICT } from '../server/schemas.ts';
import { endpointBody } from './endpoint-body.ts';
import { CHANGES, DELETES, findEndpoint, READS } from './rules.ts';
import {
  EndpointChanges,
  EndpointId,
  NEW_ENDPOINT_EXAMPLE,
  NewEndpoint,
  endpointParams as params,
  SecretText,
  WEBHOOK_BODY_BYTES_MAX,
  WebhookEndpointBody,
} from './schemas.ts';
import type { Webhooks } from './webhook-deps.ts';

const { pageMax, pageDefault, madePerHourMax } = ENDPOINT_LIMITS;
const Page = Type.Object({
  data: Type.Array(WebhookEndpointBody),
  limit: orNull(Type.Integer({ examples: [5] })),
  next: Next,
});
const Created = Type.Object({ endpoint: WebhookEndpointBody, secret: SecretText });

/** Webhook endpoints, by key or session. */
export function endpointRoutes({ endpoints }: Pick<Webhooks, 'endpoints'>): RouteOptions[] {
  return [
    accountRoute({
      method: 'GET',
      url: '/api/webhooks',
      ...READS,
      summary: 'List the webhook endpoints of the account, oldest first',
      description: 'Includes all endpoints after a downgrade; `state` says which of them work.',
      query: Type.Object(
        { limit: limitOf(pageMax, pageDefault), after: Type.Optional(EndpointId) },
        STRICT,
      ),
      answers: {
        200: answerOf(
          'One page; `limit` is the number of endpoints the tier allows, null = unlimited.',
          Page,
        ),
      },
      async handle(request) {
        const caller = callerOf(request);
        const { account } = caller;
        const { limit = pageDefault, after } = request.query;
        const found = await endpoints.list(account.id, { limit, after });
        const tier = tierOf(account, Date.now());
        return {
          data: found.map((endpoint) => endpointBody(endpoint, caller)),
          limit: tier === undefined ? 0 : TIERS[tier].webhooks,
          next: found.length < limit ? null : nextPage(request.url, { after: found.at(-1)!.id }),
        };
      },
    }),
    createEndpoint(endpoints),
    accountRoute({
      method: 'GET',
      url: '/api/webhooks/:id',
      ...READS,
      summary: 'Read an endpoint',
      params,
      answers: { 200: answerOf('The endpoint.', WebhookEndpointBody) },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const found = await findEndpoint(endpoints, request, reply);
        return found === undefined ? reply : endpointBody(found, callerOf(request));
      },
    }),
    changeEndpoint(endpoints),
    accountRoute({
      method: 'DELETE',
      url: '/api/webhooks/:id',
      ...DELETES,
      summary: 'Delete an endpoint and all messages waiting for it',
      params,
      answers: { 200: answerOf('The endpoint as it was last.', WebhookEndpointBody) },
      problems: ['object_not_found'],
      ifUnknown: 'If the endpoint was deleted, GET /api/webhooks/{id} answers 404.',
      async handle(request, reply) {
        const endpointId = request.params.id;
        const removed = await endpoints.remove({ ...requesterOf(request), endpointId });
        if (removed === undefined) return refuse(reply, 'object_not_found');
        return endpointBody(removed, callerOf(request));
      },
    }),
  ];
}

function createEndpoint(endpoints: Endpoints): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/webhooks',
    ...CHANGES,
    summary: 'Create an endpoint, pending until it answers a challenge',
    description:
      'An `endpoint.test` message is posted at once. A 2xx answer that contains `data.challenge` ' +
      'of the message, e.g. by repeating its body, enables the endpoint. At most ' +
      `${madePerHourMax} endpoints can be created within an hour.`,
    body: NewEndpoint,
    bodyExample: NEW_ENDPOINT_EXAMPLE,
    bodyBytesMax: WEBHOOK_BODY_BYTES_MAX,
    answers: {
      201: answerOf('The new endpoint and its secret, which is never shown again.', Created, {
        endpoint: { state: 'pending', status: 'pending' },
      }),
    },
    problems: ['webhook_limit', 'too_many_attempts'],
    ifUnknown: 'If GET /api/webhooks lists a new endpoint, rotate its secret to obtain one.',
    async handle(request, reply) {
      const settings = { ...SETTING_DEFAULTS, ...fromBody(request.body) };
      const made = await endpoints.create({ ...requesterOf(request), settings });
      if (made.kind !== 'ok') return refuseChange(request, reply, made);
      return reply.code(201).send({
        endpoint: endpointBody(made.endpoint, callerOf(request)),
        secret: made.secret,
      });
    },
  });
}

function changeEndpoint(endpoints: Endpoints): RouteOptions {
  return accountRoute({
    method: 'PATCH',
    url: '/api/webhooks/:id',
    ...CHANGES,
    summary: 'Change, disable or enable an endpoint; in effect within a second',
    description:
      'Omitted members stay as they are; null removes a bound; `headers` and lists are replaced ' +
      'as a whole. A new URL makes the endpoint pending with a new challenge, even if it was ' +
      'disabled. With a key, a URL at another origin needs `headers` too, if the endpoint has any: ' +
      'stored values may be credentials. Enabling an endpoint that you disabled takes effect at once; one that was ' +
      'disabled as failing or gone becomes pending first and must answer a new challenge.',
    params,
    body: EndpointChanges,
    bodyExample: { min_confidence: 90, status: 'enabled' },
    bodyBytesMax: WEBHOOK_BODY_BYTES_MAX,
    answers: { 200: answerOf('The changed endpoint.', WebhookEndpointBody) },
    problems: ['object_not_found', 'state_conflict', 'too_many_attempts'],
    ifUnknown: 'GET /api/webhooks/{id} shows its current settings.',
    async handle(request, reply) {
      const caller = callerOf(request);
      const { status, ...body } = request.body;
      const changed = await endpoints.change({
        ...requesterOf(request),
        endpointId: request.params.id,
        settings: fromBody(body),
        status,
        mayMoveHeaders: caller.session !== undefined,
      });
      if (changed === undefined) return refuse(reply, 'object_not_found');
      if (changed.kind !== 'ok') return refuseChange(request, reply, changed);
      return endpointBody(changed.endpoint, caller);
    },
  });
}

function refuseChange(
  request: FastifyRequest,
  reply: FastifyReply,
  refused: Exclude<EndpointCreated | EndpointChanged, { kind: 'ok' }>,
): FastifyReply {
  switch (refused.kind) {
    case 'invalid':
      return refuseBody(reply, refused.faults);
    case 'limit':
      return refuse(reply, 'webhook_limit', { limit: refused.limit });
    case 'conflict':
      return refuse(reply, 'state_conflict', { detail: refused.detail });
    case 'not_entitled':
      return refuse(reply, ...noTierRefusal(callerOf(request).account));
    case 'too_many_made':
      return refuse(reply, 'too_many_attempts', {
        detail: `${madePerHourMax} endpoints were created within an hour.`,
        retry_after_s: refused.retryAfterS,
      });
    case 'too_many_tests':
      return refuseTests(reply, refused);
  }
}

/** Changing the URL and enabling a failed endpoint send a test message too. */
export function refuseTests(
  reply: FastifyReply,
  { retryAfterS }: { readonly retryAfterS: number },
): FastifyReply {
  const detail = 'An account can send at most 10 test messages a minute.';
  return refuse(reply, 'too_many_attempts', { detail, retry_after_s: retryAfterS });
}
