import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { refuse } from '../../http/refuse.ts';
import { OPEN } from '../access-rule.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { STRICT } from './schemas.ts';

/** Where billing providers tell what was paid. An event has effect once, by its id. */
export function addBillingEventRoute(
  app: FastifyInstance,
  { billing, applyEvent }: Pick<Accounts, 'billing' | 'applyEvent'>,
): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/billing/events/:provider',
      tag: 'subscription',
      summary: 'Events of the billing provider, signed',
      access: OPEN,
      params: Type.Object({ provider: Type.Enum([billing.name]) }, STRICT),
      body: Type.Object({}),
      bodyExample: { type: 'payment.succeeded' },
      answers: {
        200: {
          description: 'Taken, now or before.',
          schema: Type.Object({ status: Type.Literal('ok') }),
          example: { status: 'ok' },
        },
      },
      problems: ['billing_event_invalid', 'state_conflict'],
      async handle(request, reply) {
        const event = billing.parseEvent(request.rawBody!, request.headers);
        if (event === 'signature_invalid') return refuse(reply, 'billing_event_invalid');
        if (event === 'not_for_us') return { status: 'ok' };
        const { kind } = await applyEvent(event);
        // Perhaps it came before what it is about: the provider sends it again.
        if (kind === 'unknown') {
          return refuse(reply, 'state_conflict', { detail: 'Not known here yet: send it again.' });
        }
        return { status: 'ok' };
      },
    }),
  );
}
