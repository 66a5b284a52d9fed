import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { issueStreamTicket } from '../../../domain/access/stream-tickets.ts';
import {
  endStreamSession,
  LISTED_MAX,
  listStreamSessions,
} from '../../../domain/stream-sessions/stream-sessions.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { ownAccount } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { ruled } from '../server/form.ts';
import { STRICT, Time } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';

const SocketSession = Type.Object({
  session: Type.String({
    description: 'As in the `welcome` frame',
    examples: ['s_71c0a3b4d5e6'],
  }),
  since: Time,
  address: Type.String({ examples: ['203.0.113.7'] }),
  key: Type.String({
    description: 'Hint of the key; `session` where a browser connected with a ticket',
    examples: ['pil_live_…ab12'],
  }),
  encoding: Type.Enum(['json', 'avro']),
  queue_ms: Type.Integer({ description: 'Age of the oldest unread frame' }),
  queue_bytes: Type.Integer(),
});
const Sockets = Type.Object({
  count: Type.Integer({ examples: [1] }),
  data: Type.Array(SocketSession),
});
const Ticket = Type.Object({
  ticket: Type.String({ examples: ['pit_<random>'] }),
  url: Type.String({ examples: ['ws://127.0.0.1:8082/api/stream?ticket=pit_<random>'] }),
  expires_at: Time,
});

const SESSION_ID = ruled(
  '^s_[0-9a-f]{12}$',
  'malformed',
  'The id of a socket is s_ and 12 hexadecimal digits.',
);
const params = Type.Object({ id: Type.String({ pattern: SESSION_ID }) }, STRICT);

/** The open sockets of the account, and tickets of browsers, which cannot send a key in a header. */
export function socketRoutes(accounts: Pick<Accounts, 'db' | 'addresses'>): RouteOptions[] {
  const { db, addresses } = accounts;
  return [
    accountRoute({
      method: 'POST',
      url: '/api/stream/tickets',
      tag: 'account',
      summary: 'Create a ticket for one socket, valid for 30 s',
      access: ownAccount('stream', 'pills:read', 'stream'),
      answers: { 201: answerOf('Connect to `url` once.', Ticket) },
      ifUnknown: 'Create another ticket: an unused one expires after 30 s.',
      async handle(request, reply) {
        const { account, key, session } = callerOf(request);
        const { ticket, expiresAt } = await issueStreamTicket(db, {
          accountId: account.id,
          keyId: key?.id,
          sessionHash: session?.hash,
          tokenEndsAtMs: key?.tokenEndsAtMs,
          role: session?.role,
        });
        const url = `${addresses.stream}/api/stream?ticket=${ticket}`;
        return reply.code(201).send(bodyOf(Ticket, { ticket, url, expiresAt }));
      },
    }),
    accountRoute({
      method: 'GET',
      url: '/api/stream/sessions',
      tag: 'account',
      summary: 'List the open sockets of the account and their queues',
      description:
        `Oldest first, at most ${LISTED_MAX}; \`count\` counts all. The list is up to 0.5 s old, ` +
        'the queue figures about 2 s.',
      access: ownAccount('stream', 'sockets:read', 'stream'),
      answers: { 200: answerOf('Sockets of all instances.', Sockets) },
      async handle(request) {
        const { count, sessions } = await listStreamSessions(db, callerOf(request).account.id);
        const data = sessions.map(({ openedAt: since, hint: key, ...one }) =>
          bodyOf(SocketSession, { ...one, since, key }),
        );
        return { count, data };
      },
    }),
    accountRoute({
      method: 'DELETE',
      url: '/api/stream/sessions/:id',
      tag: 'account',
      summary: 'Close a socket',
      description:
        'The socket receives an `error` frame `taken_over` and close code 4504 within a second.',
      access: ownAccount('stream', 'sockets:change', 'stream'),
      params,
      answers: { 204: { description: 'The socket is being closed.' } },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { account } = callerOf(request);
        const isOpen = await endStreamSession(db, account.id, request.params.id);
        return isOpen ? reply.code(204).send() : refuse(reply, 'object_not_found');
      },
    }),
  ];
}
