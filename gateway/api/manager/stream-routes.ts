import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { DedicatedStream } from '../../../lib/dedicated/stream-row.ts';
import { DEDICATED_LIMITS, type NoRoom } from '../../../lib/dedicated/streams.ts';
import { refuse } from '../../http/refuse.ts';
import type { AccountRule } from '../access-rule.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { idOf, lineOf, STRICT } from '../account/schemas.ts';
import { callerOf, requesterOf } from '../caller.ts';
import type { Dedicated } from './dedicated.ts';
import { DedicatedSocket, SOCKET_EXAMPLE, socketBody } from './stream-body.ts';

/** By session alone: a leaked key must not make addresses, nor end those that desks rely on. */
const MANAGES: AccountRule = {
  by: 'account',
  accepts: ['session'],
  capability: 'dedicated_stream',
  isMetered: false,
};
const params = Type.Object({ name: idOf('ded') }, STRICT);
const { perAccountMax, madePerHourMax, labelCharsMax } = DEDICATED_LIMITS;
const one = (description: string) => ({
  200: { description, schema: DedicatedSocket, example: SOCKET_EXAMPLE },
});

/** Dedicated sockets of an Institutional account: each a process of its own. */
export function addManagerStreamRoutes(app: FastifyInstance, dedicated: Dedicated): void {
  const body = (stream: DedicatedStream) => socketBody(stream, dedicated);
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/manager/streams',
      tag: 'manager',
      summary: 'Dedicated sockets, with state, lag and queue depth',
      description: 'Oldest first; figures as of a second or two ago.',
      access: MANAGES,
      answers: {
        200: {
          description: 'All that live.',
          schema: Type.Object({ data: Type.Array(DedicatedSocket), limit: Type.Integer() }),
          example: { data: [SOCKET_EXAMPLE], limit: perAccountMax },
        },
      },
      handle: async (request) => ({
        data: (await dedicated.list(callerOf(request).account.id)).map(body),
        limit: perAccountMax,
      }),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/manager/streams',
      tag: 'manager',
      summary: 'Make a dedicated socket; usable within seconds',
      description:
        `At most ${perAccountMax} of an account, and ${madePerHourMax} made in an hour; 503 when ` +
        'all places of the service are taken.',
      access: MANAGES,
      body: Type.Object({ label: lineOf(labelCharsMax) }, STRICT),
      bodyExample: { label: 'Tokyo desk' },
      answers: {
        201: {
          description: 'Its address is final; connect when `state` is ready.',
          schema: DedicatedSocket,
          example: { ...SOCKET_EXAMPLE, state: 'starting', connections: 0, reported_at: null },
        },
      },
      problems: ['dedicated_limit', 'too_many_attempts', 'overloaded'],
      async handle(request, reply) {
        const { label } = request.body;
        const made = await dedicated.create({ ...requesterOf(request), label });
        return made.kind === 'ok'
          ? reply.code(201).send(body(made.stream))
          : refuseRoom(reply, made);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/manager/streams/:name',
      tag: 'manager',
      summary: 'One dedicated socket',
      access: MANAGES,
      params,
      answers: one('The dedicated socket.'),
      problems: ['object_not_found'],
      async handle(request, reply) {
        const found = await dedicated.get(callerOf(request).account.id, request.params.name);
        return found === undefined ? refuse(reply, 'object_not_found') : body(found);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/manager/streams/:name/rotate',
      tag: 'manager',
      summary: 'Make its successor, under another name; the old one goes on for the overlap',
      access: MANAGES,
      params,
      body: Type.Object(
        {
          overlap_s: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: DEDICATED_LIMITS.overlapSMax,
              default: DEDICATED_LIMITS.overlapSDefault,
            }),
          ),
        },
        STRICT,
      ),
      bodyExample: { overlap_s: 3_600 },
      answers: {
        201: {
          description: 'The new one, and until when the old one goes on.',
          schema: Type.Object({ stream: DedicatedSocket, old: DedicatedSocket }),
          example: {
            stream: { ...SOCKET_EXAMPLE, name: 'ded_x2nt7swd5erz', state: 'starting' },
            old: {
              ...SOCKET_EXAMPLE,
              replaced_by: 'ded_x2nt7swd5erz',
              expires_at: '2026-11-20T02:04:01.000Z',
            },
          },
        },
      },
      problems: [
        ...(['object_not_found', 'state_conflict', 'dedicated_limit'] as const),
        ...(['too_many_attempts', 'overloaded'] as const),
      ],
      async handle(request, reply) {
        const { name } = request.params;
        const { overlap_s: overlapS = DEDICATED_LIMITS.overlapSDefault } = request.body;
        const rotated = await dedicated.rotate({ ...requesterOf(request), name, overlapS });
        if (rotated === undefined) return refuse(reply, 'object_not_found');
        if (rotated.kind === 'rotated') {
          return refuse(reply, 'state_conflict', { detail: 'It has a successor already.' });
        }
        if (rotated.kind !== 'ok') return refuseRoom(reply, rotated);
        return reply.code(201).send({ stream: body(rotated.stream), old: body(rotated.old) });
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'DELETE',
      url: '/api/manager/streams/:name',
      tag: 'manager',
      summary: 'Remove it: its sockets are closed with 4511 within a second or so',
      access: MANAGES,
      params,
      answers: one('The last that is known of it.'),
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { name } = request.params;
        const removed = await dedicated.remove({ ...requesterOf(request), name });
        return removed === undefined ? refuse(reply, 'object_not_found') : body(removed);
      },
    }),
  );
}

function refuseRoom(reply: FastifyReply, room: NoRoom) {
  if (room.kind === 'limit') return refuse(reply, 'dedicated_limit', { limit: perAccountMax });
  if (room.kind === 'too_many_made') {
    const detail = `${madePerHourMax} were made within an hour.`;
    return refuse(reply, 'too_many_attempts', { detail, retry_after_s: 600 });
  }
  return refuse(reply, 'overloaded', { detail: detailOf(room), retry_after_s: 60 });
}

/** Each is a process: of all accounts together there are no more than fit. */
function detailOf(room: Extract<NoRoom, { kind: 'full' | 'no_port' }>): string {
  if (room.kind === 'no_port') {
    return 'All ports for dedicated sockets are taken; the operator sets DEDICATED_PORTS.';
  }
  return (
    `All ${room.max} places for dedicated sockets are taken, over all accounts. Remove one that ` +
    'is not used any more, or ask the operator, who sets DEDICATED_MAX.'
  );
}
