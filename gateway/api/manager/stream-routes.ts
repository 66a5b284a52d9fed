import type { FastifyReply, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { DEDICATED_LIMITS, type NoCapacity } from '../../../domain/dedicated/streams.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { idOf, lineOf, overlapOf, STRICT } from '../server/schemas.ts';
import { type Dedicated, DedicatedSocket, socketBody } from './dedicated-sockets.ts';

/** By session only: a leaked key must neither create addresses nor remove addresses in use. */
const MANAGES = { tag: 'manager', access: signedIn('sockets:change', 'dedicated_stream') } as const;
const READS = { tag: 'manager', access: signedIn('sockets:read', 'dedicated_stream') } as const;
const params = Type.Object({ name: idOf('ded') }, STRICT);
const { perAccountMax, madePerHourMax, labelCharsMax } = DEDICATED_LIMITS;
const Sockets = Type.Object({
  data: Type.Array(DedicatedSocket),
  limit: Type.Integer({ examples: [perAccountMax] }),
});
const Rotation = Type.Object({ stream: DedicatedSocket, old: DedicatedSocket });

/** Dedicated sockets of an Institutional account: each is a process of its own. */
export function dedicatedSocketRoutes(dedicated: Dedicated): RouteOptions[] {
  return [
    accountRoute({
      method: 'GET',
      url: '/api/manager/streams',
      ...READS,
      summary: 'List the dedicated sockets, with state, lag and queue depth',
      description: 'Oldest first; the figures are one or two seconds old.',
      answers: { 200: answerOf('All sockets that are not removed.', Sockets) },
      handle: async (request) => ({
        data: (await dedicated.list(callerOf(request).account.id)).map((stream) =>
          socketBody(stream, dedicated),
        ),
        limit: perAccountMax,
      }),
    }),
    createSocket(dedicated),
    accountRoute({
      method: 'GET',
      url: '/api/manager/streams/:name',
      ...READS,
      summary: 'Read a dedicated socket',
      params,
      answers: { 200: answerOf('The dedicated socket.', DedicatedSocket) },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const found = await dedicated.get(callerOf(request).account.id, request.params.name);
        if (found === undefined) return refuse(reply, 'object_not_found');
        return socketBody(found, dedicated);
      },
    }),
    rotateSocket(dedicated),
    accountRoute({
      method: 'DELETE',
      url: '/api/manager/streams/:name',
      ...MANAGES,
      summary: 'Remove a dedicated socket: its connections close with 4511 within about a second',
      params,
      answers: { 200: answerOf('The socket as it was last reported.', DedicatedSocket) },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const removed = await dedicated.remove({ ...requesterOf(request), ...request.params });
        if (removed === undefined) return refuse(reply, 'object_not_found');
        return socketBody(removed, dedicated);
      },
    }),
  ];
}

function createSocket(dedicated: Dedicated): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/manager/streams',
    ...MANAGES,
    summary: 'Create a dedicated socket, usable within seconds',
    description:
      `At most ${perAccountMax} per account, and at most ${madePerHourMax} created in an hour; ` +
      '503 when the service has no capacity left.',
    body: Type.Object({ label: lineOf(labelCharsMax) }, STRICT),
    bodyExample: { label: 'Tokyo desk' },
    answers: {
      201: answerOf(
        'The new socket. Its address is final; connect when `state` is ready.',
        DedicatedSocket,
        { state: 'starting', connections: 0 },
      ),
    },
    problems: ['dedicated_limit', 'too_many_attempts', 'overloaded'],
    async handle(request, reply) {
      const made = await dedicated.create({ ...requesterOf(request), ...request.body });
      return made.kind === 'ok'
        ? reply.code(201).send(socketBody(made.stream, dedicated))
        : refuseNoRoom(reply, made);
    },
  });
}

function rotateSocket(dedicated: Dedicated): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/manager/streams/:name/rotate',
    ...MANAGES,
    summary: 'Create a successor under another name; the old socket stays open for the overlap',
    params,
    body: overlapOf(DEDICATED_LIMITS.overlapSMax, DEDICATED_LIMITS.overlapSDefault),
    bodyExample: { overlap_s: 3_600 },
    answers: {
      201: answerOf('The successor, and the old socket with its expiry.', Rotation, {
        stream: { name: 'ded_x2nt7swd5erz', state: 'starting' },
        old: { replaced_by: 'ded_x2nt7swd5erz', expires_at: '2026-11-20T02:04:01.000000Z' },
      }),
    },
    problems: [
      'object_not_found',
      'state_conflict',
      'dedicated_limit',
      'too_many_attempts',
      'overloaded',
    ],
    async handle(request, reply) {
      const { name } = request.params;
      const { overlap_s: overlapS = DEDICATED_LIMITS.overlapSDefault } = request.body;
      const rotated = await dedicated.rotate({ ...requesterOf(request), name, overlapS });
      if (rotated === undefined) return refuse(reply, 'object_not_found');
      if (rotated.kind === 'rotated') {
        return refuse(reply, 'state_conflict', { detail: 'The socket already has a successor.' });
      }
      if (rotated.kind !== 'ok') return refuseNoRoom(reply, rotated);
      return reply.code(201).send({
        stream: socketBody(rotated.stream, dedicated),
        old: socketBody(rotated.old, dedicated),
      });
    },
  });
}

function refuseNoRoom(reply: FastifyReply, room: NoCapacity) {
  if (room.kind === 'limit') return refuse(reply, 'dedicated_limit', { limit: perAccountMax });
  if (room.kind === 'too_many_made') {
    const detail = `${madePerHourMax} sockets were created within an hour.`;
    return refuse(reply, 'too_many_attempts', { detail, retry_after_s: 600 });
  }
  return refuse(reply, 'overloaded', { detail: detailOf(room), retry_after_s: 60 });
}

/** Each socket is a process, so the machine bounds the sockets of all accounts together. */
function detailOf(room: Extract<NoCapacity, { kind: 'full' | 'no_port' }>): string {
  if (room.kind === 'no_port') {
    return 'All ports for dedicated sockets are taken; the operator sets DEDICATED_PORTS.';
  }
  return (
    `All ${room.max} dedicated sockets of this service are in use, over all accounts. Remove an ` +
    'unused one, or ask the operator, who sets DEDICATED_MAX.'
  );
}
