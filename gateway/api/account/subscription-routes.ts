import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { TIERS } from '../../../lib/access/tiers.ts';
import type {
  SubscriptionChanged,
  SubscriptionRecord,
} from '../../../lib/accounts/subscriptions.ts';
import { NO_MONEY_MOVES, payCheckout } from '../../../lib/accounts/test-billing.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN, SIGNED_IN } from '../access-rule.ts';
import { callerOf, requesterOf } from '../caller.ts';
import { suspensionOf } from '../denial.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { idOf, MaybeTime, STRICT, TierName, Time } from './schemas.ts';

const Subscription = Type.Object({
  tier: TierName,
  status: Type.Enum(['active', 'past_due', 'ended']),
  in_force: Type.Boolean({ description: 'Whether it gives access now' }),
  past_due_since: MaybeTime,
  period_end: Time,
  cancel_at_period_end: Type.Boolean(),
  access_ends_at: MaybeTime,
  provider: Type.String({ description: 'test: no money moves' }),
});
const EXAMPLE = {
  tier: 'pro',
  status: 'active',
  in_force: true,
  past_due_since: null,
  period_end: '2026-12-20T01:02:03.000Z',
  cancel_at_period_end: false,
  access_ends_at: null,
  provider: 'test',
} as const;
const current = { 200: { description: 'As it is now.', schema: Subscription, example: EXAMPLE } };

/** Why a checkout cannot be ended, by what it has become. */
const NOT_OPEN = {
  paid: 'It was paid before.',
  failed: 'Its payment failed: begin another checkout.',
  expired: 'Its hour is over: begin another checkout.',
  void: 'A newer checkout was begun: pay that one.',
} as const;

/** Plans, payment, change and cancellation. */
export function addSubscriptionRoutes(
  app: FastifyInstance,
  rooms: Pick<Accounts, 'db' | 'subscriptions' | 'billing' | 'canBuy' | 'addresses'>,
): void {
  const { db, subscriptions, billing, canBuy, addresses } = rooms;
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/plans',
      tag: 'subscription',
      summary: 'What can be bought',
      access: OPEN,
      answers: {
        200: {
          description: 'The tiers.',
          schema: Type.Object({ data: Type.Array(Type.Object({ tier: TierName })) }),
          example: { data: [{ tier: 'basic', ...planBody('basic') }] },
        },
      },
      handle: () => ({
        data: (Object.keys(TIERS) as (keyof typeof TIERS)[]).map((tier) => ({
          tier,
          ...planBody(tier),
        })),
      }),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/subscription',
      tag: 'subscription',
      summary: 'The subscription of the account',
      access: SIGNED_IN,
      answers: current,
      problems: ['object_not_found'],
      async handle(request, reply) {
        const record = await subscriptions.read(callerOf(request).account.id);
        return record === undefined ? refuse(reply, 'object_not_found') : subscriptionBody(record);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/subscription/checkout',
      tag: 'subscription',
      summary: 'Begin a payment; one that was begun before cannot be paid any more',
      access: SIGNED_IN,
      body: Type.Object({ tier: TierName }, STRICT),
      bodyExample: { tier: 'pro' },
      answers: {
        201: {
          description: 'Where it is paid, within the hour.',
          schema: Type.Object({
            checkout_id: Type.String(),
            url: Type.String(),
            expires_at: Time,
            provider: Type.String(),
            takes_money: Type.Boolean(),
          }),
          example: {
            checkout_id: 'chk_k3yq7v2bqm9c',
            url: 'http://127.0.0.1:8080/docs?checkout=chk_k3yq7v2bqm9c',
            expires_at: '2026-11-20T02:02:03.000Z',
            provider: 'test',
            takes_money: false,
          },
        },
      },
      problems: [
        ...(['billing_off', 'email_unverified', 'account_suspended'] as const),
        ...(['state_conflict', 'too_many_attempts'] as const),
      ],
      async handle(request, reply) {
        if (!canBuy) return refuse(reply, 'billing_off');
        if (!callerOf(request).session!.isVerified) return refuse(reply, 'email_unverified');
        const begun = await subscriptions.beginCheckout({
          ...requesterOf(request),
          tier: request.body.tier,
          returnUrl: addresses.api,
        });
        if (begun.kind === 'account_suspended') {
          return refuse(reply, 'account_suspended', suspensionOf(callerOf(request).account));
        }
        if (begun.kind === 'already_subscribed') {
          const detail = `There is one of ${TIERS[begun.tier].title}: change its tier instead.`;
          return refuse(reply, 'state_conflict', { detail });
        }
        if (begun.kind === 'limit') {
          const detail = 'Pay the newest checkout; too many were begun to begin another.';
          return refuse(reply, 'too_many_attempts', { detail, retry_after_s: begun.retryAfterS });
        }
        return reply.code(201).send({
          checkout_id: begun.checkoutId,
          url: begun.url,
          expires_at: begun.expiresAt.toISOString(),
          provider: billing.name,
          takes_money: billing.takesMoney,
        });
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'PATCH',
      url: '/api/subscription',
      tag: 'subscription',
      summary: 'Change the tier, at once; what is too much for it is disabled, not deleted',
      access: SIGNED_IN,
      body: Type.Object({ tier: TierName }, STRICT),
      bodyExample: { tier: 'institutional' },
      answers: current,
      problems: ['subscription_required'],
      handle: async (request, reply) =>
        answerChange(
          reply,
          await subscriptions.changeTier({ ...requesterOf(request), tier: request.body.tier }),
        ),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/subscription/cancel',
      tag: 'subscription',
      summary: 'Cancel: to the end of the period that is paid, or now',
      access: SIGNED_IN,
      body: Type.Object({ at: Type.Enum(['period_end', 'now']) }, STRICT),
      bodyExample: { at: 'period_end' },
      answers: current,
      problems: ['subscription_required'],
      handle: async (request, reply) =>
        answerChange(
          reply,
          await subscriptions.cancel({ ...requesterOf(request), at: request.body.at }),
        ),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/subscription/resume',
      tag: 'subscription',
      summary: 'Take a cancellation back whose time has not come',
      access: SIGNED_IN,
      answers: current,
      problems: ['subscription_required'],
      handle: async (request, reply) =>
        answerChange(reply, await subscriptions.resume(requesterOf(request))),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/billing/test/checkouts/:id',
      tag: 'subscription',
      summary: 'Pay a checkout of the test provider',
      description: NO_MONEY_MOVES,
      access: SIGNED_IN,
      params: Type.Object({ id: idOf('chk') }, STRICT),
      body: Type.Object({ outcome: Type.Enum(['paid', 'failed']) }, STRICT),
      bodyExample: { outcome: 'paid' },
      answers: {
        200: {
          description: NO_MONEY_MOVES,
          schema: Type.Object({ outcome: Type.String(), note: Type.String() }),
          example: { outcome: 'paid', note: NO_MONEY_MOVES },
        },
      },
      problems: ['billing_off', 'object_not_found', 'state_conflict'],
      async handle(request, reply) {
        if (!canBuy) return refuse(reply, 'billing_off');
        const { accountId, ...requester } = requesterOf(request);
        const { outcome } = request.body;
        const paid = await payCheckout(db, request.params.id, accountId, outcome, requester);
        if (paid === undefined) return refuse(reply, 'object_not_found');
        if (paid.kind === 'ok') return { outcome, note: NO_MONEY_MOVES };
        return refuse(reply, 'state_conflict', { detail: NOT_OPEN[paid.status] });
      },
    }),
  );
}

function answerChange(reply: FastifyReply, changed: SubscriptionChanged) {
  if (changed.kind === 'subscription_required') return refuse(reply, 'subscription_required');
  return subscriptionBody(changed.subscription);
}

function subscriptionBody(record: SubscriptionRecord) {
  return {
    tier: record.tier,
    status: record.status,
    in_force: record.inForce,
    past_due_since: record.pastDueSince?.toISOString() ?? null,
    period_end: record.periodEnd.toISOString(),
    cancel_at_period_end: record.cancelAtPeriodEnd,
    access_ends_at: record.accessEndsAt?.toISOString() ?? null,
    provider: record.provider,
  };
}

/** A tier as the price list tells it. */
function planBody(tier: keyof typeof TIERS) {
  const plan = TIERS[tier];
  return {
    title: plan.title,
    usd_per_month: plan.usdPerMonth,
    calls_per_day: plan.callsPerDay,
    rate_per_s: plan.ratePerS,
    burst: plan.rateBurst,
    latency: plan.latency,
    stream_connections: plan.streamConnections,
    stream_symbols: plan.streamSymbols,
    webhooks: plan.webhooks,
    support: plan.support,
    capabilities: plan.capabilities,
  };
}
