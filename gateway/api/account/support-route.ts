import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { boughtTierOf } from '../../../domain/access/entitlement.ts';
import { openSupportTicket } from '../../../domain/accounts/support-tickets.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { ownAccount } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { lineOf, STRICT, textOf } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';

const Ticket = Type.Object({
  ticket: Type.String({ examples: ['tkt_k3yq7v2bqm9c'] }),
  priority: Type.Integer({ minimum: 1, maximum: 3, examples: [2] }),
  channel: Type.String({ examples: ['priority'] }),
});

/** Opens a support ticket. */
export function supportRoute({ db }: Pick<Accounts, 'db'>): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/support',
    tag: 'account',
    summary: 'Write to support; tickets are prioritised by tier',
    access: ownAccount('support'),
    body: Type.Object({ subject: lineOf(200), message: textOf(10_000) }, STRICT),
    bodyExample: { subject: 'Pills of 7203.T', message: 'None have arrived since 01:00Z. Why?' },
    answers: {
      202: answerOf('Accepted; the ticket is mailed to support about a second later.', Ticket),
    },
    problems: ['too_many_attempts'],
    ifUnknown: 'The API cannot show it: send the ticket again, and support merges the two.',
    async handle(request, reply) {
      const { account } = callerOf(request);
      const result = await openSupportTicket(db, {
        accountId: account.id,
        tier: boughtTierOf(account, Date.now()),
        ...request.body,
      });
      if (result.kind === 'limit') {
        return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
      }
      const { id: ticket, priority, channel } = result;
      return reply.code(202).send({ ticket, priority, channel });
    },
  });
}
