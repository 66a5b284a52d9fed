import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { INVOICES_MAX, listInvoices } from '../../../domain/accounts/invoices.ts';
import { NO_MONEY_MOVES } from '../../../domain/accounts/test-billing.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { signedIn } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { TierName, Time } from '../server/schemas.ts';

const Invoice = Type.Object({
  number: Type.Integer({ minimum: 1, description: 'In the order of the payments', examples: [2] }),
  kind: Type.Enum(['purchase', 'renewal'], { examples: ['purchase'] }),
  at: Time,
  tier: TierName,
  amount_cents: Type.Integer({ description: 'Credit deducted', examples: [55_240] }),
  credit_cents: Type.Integer({
    description: 'The unused part of the period that an upgrade replaced',
    examples: [4_660],
  }),
  currency: Type.String({ examples: ['USD'] }),
  period_end: Time,
  note: Type.String({ examples: [NO_MONEY_MOVES] }),
});

/** The payments of the account, each of which the console shows as a document. */
export function invoiceRoute({ db }: { readonly db: Database }): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/subscription/invoices',
    tag: 'subscription',
    summary: 'List the payments of the test provider, newest first',
    description: `At most ${INVOICES_MAX}. ${NO_MONEY_MOVES}`,
    access: signedIn('billing:read'),
    answers: { 200: answerOf('The payments.', Type.Object({ data: Type.Array(Invoice) })) },
    async handle(request) {
      const invoices = await listInvoices(db, callerOf(request).account.id);
      const data = invoices.map((one) =>
        bodyOf(Invoice, { ...one, currency: 'USD', note: NO_MONEY_MOVES }),
      );
      return { data };
    },
  });
}
