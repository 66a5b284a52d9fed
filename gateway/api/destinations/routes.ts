import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { DESTINATION_TYPES } from '../../../domain/destinations/catalogue.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { attemptsRoute } from './attempts-route.ts';
import { shownDestinations } from './destination-body.ts';
import type { DestinationDeps } from './destination-deps.ts';
import { CHANGES, DESTINATIONS, READS, REMOVES } from './rules.ts';
import { DestinationBody, destinationParams as params, TypeBody } from './schemas.ts';
import { testRoute } from './test-route.ts';
import { typeRoutes } from './type-routes.ts';

/** All routes about destinations. Each type has routes of its own to create and change. */
export function destinationRoutes(deps: DestinationDeps): RouteOptions[] {
  return [
    listTypes(),
    list(deps),
    show(deps),
    ...[...DESTINATION_TYPES.values()].flatMap((type) => typeRoutes(deps, type)),
    pause(deps),
    resume(deps),
    testRoute(deps),
    attemptsRoute(deps),
    remove(deps),
  ];
}

type OwnRequest = FastifyRequest & { readonly params: { readonly id: string } };

const ownOf = (request: OwnRequest) => ({
  ...requesterOf(request),
  destinationId: request.params.id,
});

function listTypes(): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/destinations/types',
    ...DESTINATIONS,
    access: READS,
    summary: 'List the types of destinations, with the schemas of their settings and instructions',
    answers: { 200: answerOf('All types.', Type.Object({ data: Type.Array(TypeBody) })) },
    handle: () => ({
      data: [...DESTINATION_TYPES.values()].map((type) => bodyOf(TypeBody, type)),
    }),
  });
}

function list(deps: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/destinations',
    ...DESTINATIONS,
    access: READS,
    summary: 'List the destinations of the account, with their state and lag',
    answers: { 200: answerOf('Oldest first.', Type.Object({ data: Type.Array(DestinationBody) })) },
    async handle(request) {
      const found = await deps.destinations.list(callerOf(request).account.id);
      return { data: await shownDestinations(deps, found) };
    },
  });
}

function show(deps: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/destinations/:id',
    ...DESTINATIONS,
    access: READS,
    summary: 'Read a destination, with its state and lag',
    params,
    answers: { 200: answerOf('The destination.', DestinationBody) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const { destinations } = deps;
      const found = await destinations.get(callerOf(request).account.id, request.params.id);
      return answer(deps, reply, found);
    },
  });
}

function pause(deps: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/destinations/:id/pause',
    ...DESTINATIONS,
    access: REMOVES,
    summary: 'Pause a destination within about a second; its position stays',
    params,
    answers: { 200: answerOf('The destination.', DestinationBody, { state: 'paused' }) },
    problems: ['object_not_found'],
    handle: async (request, reply) =>
      answer(deps, reply, await deps.destinations.pause(ownOf(request))),
  });
}

function resume(deps: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/destinations/:id/resume',
    ...DESTINATIONS,
    access: CHANGES,
    summary: 'Resume a destination at its position',
    description:
      'Pills since the pause are delivered. If the destination ended with the tier, it starts now instead.',
    params,
    answers: { 200: answerOf('The destination.', DestinationBody) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const start = deps.now();
      return answer(deps, reply, await deps.destinations.resume({ ...ownOf(request), start }));
    },
  });
}

function remove(deps: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'DELETE',
    url: '/api/destinations/:id',
    ...DESTINATIONS,
    access: REMOVES,
    summary: 'Remove a destination with its credentials; what was written stays',
    params,
    answers: { 204: { description: 'The destination is removed.' } },
    problems: ['object_not_found'],
    ifUnknown: 'If the destination was removed, GET /api/destinations/{id} answers 404.',
    async handle(request, reply) {
      const removed = await deps.destinations.remove(ownOf(request));
      return removed === undefined ? refuse(reply, 'object_not_found') : reply.code(204).send();
    },
  });
}

async function answer(
  deps: DestinationDeps,
  reply: FastifyReply,
  found: Parameters<typeof shownDestinations>[1][number] | undefined,
) {
  if (found === undefined) return refuse(reply, 'object_not_found');
  return (await shownDestinations(deps, [found]))[0];
}
