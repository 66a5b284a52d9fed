import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import {
  endStreamSession,
  LISTED_MAX,
  listStreamSessions,
} from '../../../lib/stream-sessions/stream-sessions.ts';
import { refuse } from '../../http/refuse.ts';
import { STREAMING } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { STRICT, Time } from './schemas.ts';

const SocketSession = Type.Object({
  session: Type.String({ description: 'As `welcome` tells it' }),
  since: Time,
  address: Type.String(),
  key: Type.String({ description: '`session` where a browser came with a ticket' }),
  encoding: Type.Enum(['json', 'avro']),
  queue_ms: Type.Integer({ description: 'How long its oldest unread frame waits' }),
  queue_bytes: Type.Integer(),
});
const params = Type.Object({ id: Type.String({ pattern: '^s_[0-9a-f]{12}$' }) }, STRICT);

/** The account's open sockets: what they are, and an end to one of them. */
export function addStreamSessionRoutes(app: FastifyInstance, { db }: Pick<Accounts, 'db'>): void {
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/stream/sessions',
      tag: 'account',
      summary: 'Open sockets of the account, with what waits for each',
      description: `Oldest first, at most ${LISTED_MAX}; \`count\` counts all. As of half a second ago; what waits, as of some 2 s.`,
      access: STREAMING,
      answers: {
        200: {
          description: 'Over all instances.',
          schema: Type.Object({ count: Type.Integer(), data: Type.Array(SocketSession) }),
          example: {
            count: 1,
            data: [
              {
                session: 's_71c0a3b4d5e6',
                since: '2026-11-20T00:00:12.000Z',
                address: '203.0.113.7',
                key: 'pil_live_…ab12',
                encoding: 'json',
                queue_ms: 0,
                queue_bytes: 0,
              },
            ],
          },
        },
      },
      async handle(request) {
        const { count, sessions } = await listStreamSessions(db, callerOf(request).account.id);
        const data = sessions.map((one) => ({
          session: one.session,
          since: one.openedAt.toISOString(),
          address: one.address,
          key: one.hint,
          encoding: one.encoding,
          queue_ms: one.queueMs,
          queue_bytes: one.queueBytes,
        }));
        return { count, data };
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'DELETE',
      url: '/api/stream/sessions/:id',
      tag: 'account',
      summary: 'Close a socket',
      description: 'It gets an `error` frame `taken_over` and close code 4504 within a second.',
      access: STREAMING,
      params,
      answers: { 204: { description: 'It is being closed.' } },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { account } = callerOf(request);
        const isThere = await endStreamSession(db, account.id, request.params.id);
        return isThere ? reply.code(204).send() : refuse(reply, 'object_not_found');
      },
    }),
  );
}
