import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { issueTicket } from '../../../lib/access/tickets.ts';
import { STREAMING } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { Time } from './schemas.ts';

/** A pass for one socket, opened by a browser, which cannot send a key in a header. */
export function addStreamTicketRoute(
  app: FastifyInstance,
  { db, addresses }: Pick<Accounts, 'db' | 'addresses'>,
): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/stream/tickets',
      tag: 'account',
      summary: 'A pass for one socket, good for 30 s',
      access: STREAMING,
      answers: {
        201: {
          description: 'Open `url` once.',
          schema: Type.Object({ ticket: Type.String(), url: Type.String(), expires_at: Time }),
          example: {
            ticket: 'pit_<random>',
            url: 'ws://127.0.0.1:8082/api/stream?ticket=pit_<random>',
            expires_at: '2026-11-20T01:02:33.000Z',
          },
        },
      },
      ifUnknown: 'Ask for another one: one that nobody has ends after 30 s.',
      async handle(request, reply) {
        const { account, key, session } = callerOf(request);
        const { ticket, expiresAt } = await issueTicket(db, {
          accountId: account.id,
          keyId: key?.id,
          sessionHash: session?.hash,
        });
        return reply
          .code(201)
          .header('cache-control', 'no-store')
          .send({
            ticket,
            url: `${addresses.stream}/api/stream?ticket=${ticket}`,
            expires_at: expiresAt.toISOString(),
          });
      },
    }),
  );
}
