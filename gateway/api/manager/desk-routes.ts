import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { DeskRecord } from '../../../domain/desks/desk-row.ts';
import {
  DESK_LIMITS,
  type Desks,
  type Precondition,
  versionOf,
} from '../../../domain/desks/desks.ts';
import { answerOf, bodyOf, fromBody } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import {
  DeskName,
  limitOf,
  MaybeTime,
  orNull,
  STRICT,
  symbolOf,
  Time,
  timeOf,
} from '../server/schemas.ts';

const BIG = 1_000_000_000;
const bound = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: BIG, description });
const optional = <T extends Parameters<typeof Type.Optional>[0]>(schema: T) =>
  Type.Optional(orNull(schema));
/** Absent or null: the limit of the account. */
const Settings = Type.Object(
  {
    calls_per_day: optional(bound(1, 'Calls per UTC day, of all keys and processes')),
    rate_per_s: optional(bound(1, 'Calls per second of each process')),
    burst: optional(bound(1, 'By default twice `rate_per_s`')),
    stream_connections: optional(bound(0, 'Open sockets, over all processes')),
    symbols: optional(
      Type.Array(symbolOf(), {
        minItems: 1,
        maxItems: DESK_LIMITS.symbolsMax,
        uniqueItems: true,
        description: 'The only symbols that keys of the desk may read',
      }),
    ),
    allow_cidrs: optional(
      Type.Array(Type.String({ minLength: 2, maxLength: 64 }), {
        maxItems: DESK_LIMITS.networksMax,
        description: 'IPv4 or IPv6 networks; empty = any address',
      }),
    ),
    expires_at: optional(timeOf('When the keys of the desk end')),
  },
  STRICT,
);
const count = (example: number) => orNull(Type.Integer({ examples: [example] }));
const Desk = Type.Object({
  name: Type.String({ examples: ['tokyo'] }),
  calls_per_day: count(100_000),
  rate_per_s: count(50),
  burst: count(100),
  stream_connections: count(10),
  symbols: orNull(Type.Array(Type.String()), 'null = all'),
  allow_cidrs: Type.Array(Type.String({ examples: ['203.0.113.0/24'] })),
  expires_at: MaybeTime,
  created_at: Time,
  created_by: Type.String({ examples: ['user:usr_k3yq7v2bqm9c'] }),
  live_keys: Type.Integer({ examples: [2] }),
  open_sockets: Type.Integer({ examples: [3] }),
  used_today: Type.Integer({ examples: [4_711] }),
});
const params = Type.Object({ name: DeskName }, STRICT);
const READS = { tag: 'manager', access: signedIn('desks:read') } as const;

/**
 * Desks of an Institutional account. Reading and removing need no capability: after a downgrade
 * desks stay and hold their keys to their limits, until the owner removes them.
 */
export function deskRoutes(desks: Desks): RouteOptions[] {
  return [
    accountRoute({
      ...READS,
      method: 'GET',
      url: '/api/manager/desks',
      summary: 'List the desks with their limits, keys, sockets, and calls of today',
      answers: {
        200: answerOf('By name.', Type.Object({ data: Type.Array(Desk), limit: Type.Integer() })),
      },
      async handle(request) {
        const all = await desks.list(callerOf(request).account.id);
        return { data: all.map((desk) => bodyOf(Desk, desk)), limit: DESK_LIMITS.perAccountMax };
      },
    }),
    accountRoute({
      ...READS,
      method: 'GET',
      url: '/api/manager/desks/:name',
      summary: 'Read a desk',
      params,
      answers: { 200: answerOf('The desk; `ETag` is that of its limits.', Desk) },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const desk = await desks.get(callerOf(request).account.id, request.params.name);
        return desk === undefined ? refuse(reply, 'object_not_found') : answerDesk(reply, desk);
      },
    }),
    usageRoute(desks),
    putRoute(desks),
    removeRoute(desks),
  ];
}

function usageRoute(desks: Desks): RouteOptions {
  const Day = Type.Object({
    day: Type.String({ examples: ['2026-11-20'] }),
    calls: Type.Integer({ examples: [4_711] }),
  });
  return accountRoute({
    ...READS,
    method: 'GET',
    url: '/api/manager/desks/:name/usage',
    summary: 'Count the calls of a desk by UTC day, over all of its keys',
    params,
    query: Type.Object({ days: limitOf(DESK_LIMITS.usageDaysMax, 30) }, STRICT),
    answers: { 200: answerOf('Oldest day first.', Type.Object({ by_day: Type.Array(Day) })) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const desk = await desks.get(callerOf(request).account.id, request.params.name);
      if (desk === undefined) return refuse(reply, 'object_not_found');
      return { by_day: await desks.usage(desk.id, request.query.days ?? 30) };
    },
  });
}

function putRoute(desks: Desks): RouteOptions {
  return accountRoute({
    method: 'PUT',
    url: '/api/manager/desks/:name',
    tag: 'manager',
    access: withFreshFactor(signedIn('desks:change', 'api_manager')),
    summary: 'Create a desk, or replace its limits; in effect everywhere within a second',
    description:
      'A limit that is absent or null is that of the account, which no limit may exceed. Replacing ' +
      'needs the `ETag` of the desk as `If-Match`; `If-None-Match: *` only creates. The same limits ' +
      'again change nothing. Sockets with a symbol that the desk may no longer read are closed.',
    params,
    body: Settings,
    bodyExample: { calls_per_day: 100_000, rate_per_s: 50, symbols: ['7203.T'] },
    answers: {
      200: answerOf('The desk, replaced.', Desk),
      201: answerOf('The new desk.', Desk),
    },
    problems: ['desk_limit', 'precondition_failed', 'precondition_required'],
    ifUnknown: 'Read the desk, and compare it with your change.',
    async handle(request, reply) {
      const { expiresAt, ...limits } = fromBody(request.body);
      const ends = expiresAt === undefined ? undefined : new Date(expiresAt);
      const settings = { ...limits, expiresAt: ends };
      const { name } = request.params;
      const precondition = preconditionOf(request);
      const result = await desks.put({ ...requesterOf(request), name, precondition, settings });
      switch (result.kind) {
        case 'ok':
          return answerDesk(reply.code(result.isNew ? 201 : 200), result.desk);
        case 'limit':
          return refuse(reply, 'desk_limit', { limit: DESK_LIMITS.perAccountMax });
        case 'invalid': {
          const { field, reason } = result;
          const fault = bodyFault(`/${field}`, 'out_of_range', `\`${field}\` ${reason}`);
          return refuseBody(reply, [fault]);
        }
        default:
          return refuse(reply, result.kind);
      }
    },
  });
}

function removeRoute(desks: Desks): RouteOptions {
  return accountRoute({
    method: 'DELETE',
    url: '/api/manager/desks/:name',
    tag: 'manager',
    access: signedIn('desks:change'),
    summary: 'Remove a desk and revoke its keys: refused everywhere within a second',
    params,
    answers: { 204: { description: 'Removed; the name is free again.' } },
    problems: ['object_not_found', 'precondition_failed'],
    async handle(request, reply) {
      const { name } = request.params;
      const precondition = preconditionOf(request);
      const removed = await desks.remove({ ...requesterOf(request), name, precondition });
      if (removed === undefined) return refuse(reply, 'object_not_found');
      return removed.kind === 'ok' ? reply.code(204).send() : refuse(reply, removed.kind);
    },
  });
}

function answerDesk(reply: FastifyReply, desk: DeskRecord): FastifyReply {
  return reply.header('etag', `"${versionOf(desk)}"`).send(bodyOf(Desk, desk));
}

/** `If-Match` compares strongly (RFC 9110, section 13.1.1): a weak tag names no version. */
function preconditionOf({ headers }: FastifyRequest): Precondition {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
  if (ifMatch !== undefined) {
    if (ifMatch.trim() === '*') return { kind: 'one_of', versions: '*' };
    const tags = ifMatch.split(',').flatMap((tag) => /^\s*"([^"]*)"\s*$/.exec(tag)?.[1] ?? []);
    return { kind: 'one_of', versions: tags };
  }
  return ifNoneMatch?.trim() === '*' ? { kind: 'absent' } : undefined;
}
