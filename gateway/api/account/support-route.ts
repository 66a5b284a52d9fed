import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { tierOf } from '../../../lib/access/entitlement.ts';
import { takeTicket } from '../../../lib/accounts/support.ts';
import { refuse } from '../../http/refuse.ts';
import { OWN_ACCOUNT } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { lineOf, STRICT, textOf } from './schemas.ts';

/** A question to support. */
export function addSupportRoute(app: FastifyInstance, { db }: Pick<Accounts, 'db'>): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/support',
      tag: 'account',
      summary: 'Write to support; tickets are ordered by tier',
      access: OWN_ACCOUNT,
      body: Type.Object(
        {
          subject: lineOf(200),
          message: textOf(10_000),
        },
        STRICT,
      ),
      bodyExample: { subject: 'Pills of 7203.T', message: 'Since 01:00Z there are none. Why?' },
      answers: {
        202: {
          description: 'Taken; it is mailed to support about a second later.',
          schema: Type.Object({
            ticket: Type.String(),
            priority: Type.Integer({ minimum: 1, maximum: 3 }),
            channel: Type.String(),
          }),
          example: { ticket: 'tkt_k3yq7v2bqm9c', priority: 2, channel: 'priority' },
        },
      },
      problems: ['too_many_attempts'],
      ifUnknown: 'Nothing tells it: send it again, support puts the two together.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const taken = await takeTicket(db, {
          accountId: account.id,
          tier: tierOf(account, Date.now()),
          ...request.body,
        });
        if (taken.kind === 'limit') {
          return refuse(reply, 'too_many_attempts', { retry_after_s: taken.retryAfterS });
        }
        const { id: ticket, priority, channel } = taken;
        return reply.code(202).send({ ticket, priority, channel });
      },
    }),
  );
}
