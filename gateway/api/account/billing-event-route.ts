import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { STRICT } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';

/** Receives payment events of the billing provider. An event takes effect once, by its id. */
export function billingEventRoute({
  billing,
  applyEvent,
  canBuy,
}: Pick<Accounts, 'billing' | 'applyEvent' | 'canBuy'>): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/billing/events/:provider',
    tag: 'subscription',
    summary: 'Receive a signed event of the billing provider',
    access: OPEN,
    params: Type.Object({ provider: Type.Enum([billing.name]) }, STRICT),
    body: Type.Object({}),
    bodyExample: { type: 'payment.succeeded' },
    answers: {
      200: answerOf('Accepted, now or earlier.', Type.Object({ status: Type.Literal('ok') })),
    },
    problems: ['billing_off', 'billing_event_invalid', 'state_conflict'],
    async handle(request, reply) {
      if (!canBuy) return refuse(reply, 'billing_off');
      const event = billing.parseEvent(request.rawBody!, request.headers);
      if (event === 'signature_invalid') return refuse(reply, 'billing_event_invalid');
      if (event === 'not_for_us') return { status: 'ok' };
      const { kind } = await applyEvent(event);
      // The event may precede the checkout that it refers to; the provider sends it again.
      if (kind === 'unknown') {
        return refuse(reply, 'state_conflict', {
          detail: 'The subject of the event is not known here yet: send the event again.',
        });
      }
      return { status: 'ok' };
    },
  });
}
