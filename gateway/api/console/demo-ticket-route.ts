import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { issueTicket } from '../../../lib/access/tickets.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED } from '../access-rule.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { Time } from '../account/schemas.ts';

/**
 * A pass for one socket of the demo account, for whoever asks: it is there only where the operator
 * named that account. Its plan bounds how many watch at a time.
 */
export function addDemoTicketRoute(
  app: FastifyInstance,
  { db, accountId }: { readonly db: Database; readonly accountId: string },
): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/stream/demo-tickets',
      tag: 'service',
      summary: 'A pass for one socket of the demo account, good for 30 s',
      access: OPEN_LIMITED,
      answers: {
        201: {
          description: 'Open one socket with `?ticket=`.',
          schema: Type.Object({ ticket: Type.String(), expires_at: Time }),
          example: { ticket: 'pit_<random>', expires_at: '2026-11-20T01:02:33.000Z' },
        },
      },
      problems: ['object_not_found'],
      ifUnknown: 'Ask for another one: one that nobody has ends after 30 s.',
      async handle(_request, reply) {
        const account = await db
          .selectFrom('accounts')
          .select('id')
          .where('id', '=', accountId)
          .executeTakeFirst();
        if (account === undefined) return refuse(reply, 'object_not_found');
        const { ticket, expiresAt } = await issueTicket(db, { accountId, keyId: undefined });
        return reply
          .code(201)
          .header('cache-control', 'no-store')
          .send({ ticket, expires_at: expiresAt.toISOString() });
      },
    }),
  );
}
