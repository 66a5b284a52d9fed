import type { FastifyReply, RouteOptions } from 'fastify';
import type { TObject } from 'typebox';
import type { AnyDestinationType } from '../../../domain/destinations/destination-type.ts';
import type { Destinations } from '../../../domain/destinations/destinations.ts';
import { DESTINATION_LIMITS } from '../../../domain/destinations/limits.ts';
import { SETTING_DEFAULTS } from '../../../domain/webhooks/endpoints/endpoint-settings.ts';
import type { EndpointFilter } from '../../../domain/webhooks/endpoints/webhook-endpoint.ts';
import { answerOf, fromBody } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { refuseBody } from '../server/json-body.ts';
import { shownDestinations } from './destination-body.ts';
import type { DestinationDeps } from './destination-deps.ts';
import { CHANGES, DESTINATIONS } from './rules.ts';
import {
  DESTINATION_BODY_BYTES_MAX,
  DestinationBody,
  destinationChanges,
  newDestination,
  destinationParams as params,
} from './schemas.ts';

/** What the schemas of all types have in common. */
interface NewBody {
  readonly name: string;
  readonly settings: object;
  readonly secrets: object;
  readonly start?: 'now' | 'earliest';
}
type ChangeBody = Partial<Omit<NewBody, 'start'>>;

const { symbols, minConfidence, minSpread, maxSpread, states, backfill } = SETTING_DEFAULTS;
const NO_FILTER = { symbols, minConfidence, minSpread, maxSpread, states, backfill };

/** The routes of one type, whose bodies come from its schemas. */
export function typeRoutes(deps: DestinationDeps, type: AnyDestinationType): RouteOptions[] {
  return [create(deps, type), change(deps, type)];
}

function create(deps: DestinationDeps, type: AnyDestinationType): RouteOptions {
  const body: TObject = newDestination(type);
  return accountRoute({
    method: 'POST',
    url: `/api/destinations/${type.name}`,
    ...DESTINATIONS,
    access: CHANGES,
    summary: `Create a destination: ${type.title}`,
    description: `${type.instructions}\n\nAt most ${DESTINATION_LIMITS.perAccountMax} destinations of an account.`,
    body,
    bodyExample: { name: 'lake', ...type.example, min_confidence: 80 },
    bodyBytesMax: DESTINATION_BODY_BYTES_MAX,
    answers: { 201: answerOf('The new destination, active.', DestinationBody) },
    problems: ['destination_limit', 'too_many_attempts', 'email_unverified'],
    ifUnknown: 'If GET /api/destinations lists a new destination, it was created.',
    async handle(request, reply) {
      if (!callerOf(request).session!.isVerified) return refuse(reply, 'email_unverified');
      const {
        name,
        settings,
        secrets,
        start = 'now',
        ...filter
      } = request.body as unknown as NewBody;
      const made = await deps.destinations.create({
        ...requesterOf(request),
        ...{ type, name, settings, secrets },
        filter: { ...NO_FILTER, ...(fromBody(filter) as Partial<EndpointFilter>) },
        start: start === 'now' ? deps.now() : deps.earliest(),
      });
      if (made.kind !== 'ok') return refuseNew(reply, made);
      const [shown] = await shownDestinations(deps, [made.destination]);
      return reply.code(201).send(shown);
    },
  });
}

function change(deps: DestinationDeps, type: AnyDestinationType): RouteOptions {
  const body: TObject = destinationChanges(type);
  return accountRoute({
    method: 'PATCH',
    url: `/api/destinations/${type.name}/:id`,
    ...DESTINATIONS,
    access: CHANGES,
    summary: `Change a destination: ${type.title}; in effect within about a second`,
    description:
      'Omitted members stay as they are; null removes a bound; `secrets` and lists are replaced as a ' +
      `whole. ${type.fixed.join(', ')} never change. Another ${type.receivers.join(', ')} needs ` +
      '`secrets` too, because it gets them.',
    params,
    body,
    bodyExample: { secrets: type.example.secrets },
    bodyBytesMax: DESTINATION_BODY_BYTES_MAX,
    answers: { 200: answerOf('The changed destination.', DestinationBody) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const { name, settings, secrets, ...filter } = request.body as unknown as ChangeBody;
      const changed = await deps.destinations.change({
        ...requesterOf(request),
        destinationId: request.params.id,
        ...{ type, name, settings, secrets },
        filter: fromBody(filter),
      });
      if (changed === undefined) return refuse(reply, 'object_not_found');
      if (changed.kind === 'invalid') return refuseBody(reply, changed.faults);
      return (await shownDestinations(deps, [changed.destination]))[0];
    },
  });
}

type Refused = Exclude<Awaited<ReturnType<Destinations['create']>>, { kind: 'ok' }>;

function refuseNew(reply: FastifyReply, refused: Refused): FastifyReply {
  const { perAccountMax: limit, madePerHourMax } = DESTINATION_LIMITS;
  switch (refused.kind) {
    case 'invalid':
      return refuseBody(reply, refused.faults);
    case 'limit':
      return refuse(reply, 'destination_limit', { limit });
    case 'too_many_made':
      return refuse(reply, 'too_many_attempts', {
        detail: `${madePerHourMax} destinations were created within an hour.`,
        retry_after_s: 600,
      });
  }
}
