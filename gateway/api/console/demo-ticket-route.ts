import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { issueStreamTicket } from '../../../domain/access/stream-tickets.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { Time } from '../server/schemas.ts';

const Ticket = Type.Object({
  ticket: Type.String({ examples: ['pit_<random>'] }),
  expires_at: Time,
});

/**
 * A ticket for one socket of the demo account, without sign-in. The route exists only where the
 * operator named that account, whose plan bounds the number of viewers.
 */
export function demoTicketRoute(db: Database, accountId: string): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/stream/demo-tickets',
    tag: 'service',
    summary: 'Create a ticket for one socket of the demo account, valid for 30 s',
    access: OPEN_LIMITED,
    answers: { 201: answerOf('Open one socket with `?ticket=`.', Ticket) },
    problems: ['object_not_found'],
    ifUnknown: 'Create another ticket: an unused one expires after 30 s.',
    async handle(_request, reply) {
      const query = db.selectFrom('accounts').select('id').where('id', '=', accountId);
      const account = await query.executeTakeFirst();
      if (account === undefined) return refuse(reply, 'object_not_found');
      const issued = await issueStreamTicket(db, { accountId, keyId: undefined });
      reply.code(201).header('cache-control', 'no-store');
      return reply.send(bodyOf(Ticket, issued));
    },
  });
}
