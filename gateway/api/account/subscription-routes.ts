import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { suspensionOf } from '../../../domain/access/suspension.ts';
import { TIERS } from '../../../domain/access/tiers.ts';
import { type NoPurchase, purchaseRefusal } from '../../../domain/accounts/checkouts.ts';
import type { SubscriptionChanged } from '../../../domain/accounts/subscriptions.ts';
import { NO_MONEY_MOVES, payCheckout } from '../../../domain/accounts/test-billing.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN, signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { idOf, MaybeTime, orNull, STRICT, TierName, Time } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';

const Subscription = Type.Object({
  tier: TierName,
  status: Type.Enum(['active', 'past_due', 'ended']),
  in_force: Type.Boolean({ description: 'Whether it gives access now', examples: [true] }),
  past_due_since: MaybeTime,
  period_end: Time,
  cancel_at_period_end: Type.Boolean(),
  next_tier: Type.Union([TierName, Type.Null()], {
    description: 'The lower tier from period_end on; null: the same',
    examples: [null],
  }),
  access_ends_at: MaybeTime,
  provider: Type.String({ description: 'test: no money moves', examples: ['test'] }),
});
const current = { 200: answerOf('The current subscription.', Subscription) };
const Checkout = Type.Object({
  checkout_id: Type.String({ examples: ['chk_k3yq7v2bqm9c'] }),
  url: Type.String({ examples: ['http://127.0.0.1:8080/docs?checkout=chk_k3yq7v2bqm9c'] }),
  tier: TierName,
  amount_cents: Type.Integer({ description: 'To pay, credit deducted', examples: [55_240] }),
  credit_cents: Type.Integer({
    description: 'For an upgrade: the unused part of the present period, which ends',
    examples: [4_660],
  }),
  currency: Type.String({ examples: ['USD'] }),
  period_days: Type.Integer({
    description: 'The paid period, which begins with the payment',
    examples: [30],
  }),
  expires_at: Time,
  provider: Type.String({ examples: ['test'] }),
  takes_money: Type.Boolean(),
});
const Payment = Type.Object({
  outcome: Type.String({ examples: ['paid'] }),
  note: Type.String({ examples: [NO_MONEY_MOVES] }),
});
const Plan = Type.Object({
  tier: TierName,
  title: Type.String({ examples: [TIERS.basic.title] }),
  usd_per_month: Type.Number({ examples: [TIERS.basic.usdPerMonth] }),
  calls_per_day: orNull(Type.Integer({ examples: [TIERS.basic.callsPerDay] })),
  rate_per_s: Type.Integer({ examples: [TIERS.basic.ratePerS] }),
  burst: Type.Integer({ examples: [TIERS.basic.rateBurst] }),
  latency: Type.String({ examples: [TIERS.basic.latency] }),
  stream_connections: Type.Integer(),
  stream_symbols: Type.Integer(),
  webhooks: orNull(Type.Integer({ examples: [TIERS.basic.webhooks] })),
  support: Type.String({ examples: [TIERS.basic.support] }),
  capabilities: Type.Array(Type.String(), { examples: [TIERS.basic.capabilities] }),
});

/** Problems of routes that buy, or keep a tier for another period. */
const PURCHASE = [
  'billing_off',
  'email_unverified',
  'account_suspended',
  'payment_overdue',
] as const;

/** What the routes that change a subscription have in common. */
const CHANGE = {
  tag: 'subscription',
  access: withFreshFactor(signedIn('billing:change')),
  answers: current,
  problems: ['subscription_required'],
} as const;

/** Why a checkout can no longer be paid, by its status. */
const NOT_OPEN = {
  paid: 'The checkout is already paid.',
  failed: 'The payment of this checkout failed: begin another one.',
  expired: 'The checkout expired after an hour: begin another one.',
  void: 'A newer checkout or a change of the subscription replaced this one: begin another one.',
} as const;

type SubscriptionDeps = Pick<Accounts, 'db' | 'subscriptions' | 'billing' | 'canBuy' | 'addresses'>;

/** Plans, payment, change and cancellation. */
export function subscriptionRoutes(deps: SubscriptionDeps): RouteOptions[] {
  const { subscriptions } = deps;
  return [
    accountRoute({
      method: 'GET',
      url: '/api/plans',
      tag: 'subscription',
      summary: 'List the plans on sale',
      access: OPEN,
      answers: { 200: answerOf('The tiers.', Type.Object({ data: Type.Array(Plan) })) },
      handle: () => ({
        data: Object.entries(TIERS).map(([tier, plan]) =>
          bodyOf(Plan, { ...plan, tier, burst: plan.rateBurst }),
        ),
      }),
    }),
    accountRoute({
      method: 'GET',
      url: '/api/subscription',
      tag: 'subscription',
      summary: 'Read the subscription of the account',
      access: signedIn('billing:read'),
      answers: current,
      problems: ['object_not_found'],
      async handle(request, reply) {
        const record = await subscriptions.read(callerOf(request).account.id);
        if (record === undefined) return refuse(reply, 'object_not_found');
        return bodyOf(Subscription, record);
      },
    }),
    beginCheckout(deps),
    accountRoute({
      ...CHANGE,
      method: 'PATCH',
      url: '/api/subscription',
      summary: 'Choose a lower tier from the next period on',
      description:
        'Takes effect at `period_end`; then whatever is over the limits of the lower tier is ' +
        'disabled, not deleted. The present tier withdraws the choice before. A higher tier must ' +
        'be paid: begin its checkout at POST /api/subscription/checkout.',
      body: Type.Object({ tier: TierName }, STRICT),
      bodyExample: { tier: 'basic' },
      problems: ['subscription_required', 'payment_required', ...PURCHASE],
      handle: (request, reply) =>
        answerChange(request, reply, (by) => subscriptions.changeTier({ ...by, ...request.body })),
    }),
    cancelSubscription(deps),
    accountRoute({
      ...CHANGE,
      method: 'POST',
      url: '/api/subscription/resume',
      summary: 'Undo a cancellation that has not taken effect yet',
      problems: ['subscription_required', ...PURCHASE],
      handle: (request, reply) => answerChange(request, reply, (by) => subscriptions.resume(by)),
    }),
    payTestCheckout(deps),
  ];
}

function beginCheckout(deps: SubscriptionDeps): RouteOptions {
  const { subscriptions, billing, addresses } = deps;
  return accountRoute({
    method: 'POST',
    url: '/api/subscription/checkout',
    tag: 'subscription',
    summary: 'Begin a checkout; an earlier open checkout can no longer be paid',
    description:
      'Buys a subscription, or upgrades the present one. An upgrade begins a new period at once; ' +
      'the unused part of the present one is credited. The answer states the amount before ' +
      'anything is paid.',
    access: withFreshFactor(signedIn('billing:change')),
    body: Type.Object({ tier: TierName }, STRICT),
    bodyExample: { tier: 'pro' },
    answers: { 201: answerOf('Where to pay within the hour.', Checkout) },
    problems: [...PURCHASE, 'state_conflict', 'too_many_attempts'],
    async handle(request, reply) {
      const wanted = { ...buyerOf(request), ...request.body, returnUrl: addresses.api };
      const begun = await subscriptions.beginCheckout(wanted);
      switch (begun.kind) {
        case 'ok': {
          const { name: provider, takesMoney } = billing;
          return reply.code(201).send(bodyOf(Checkout, { ...begun, provider, takesMoney }));
        }
        case 'conflict':
          return refuse(reply, 'state_conflict', { detail: begun.detail });
        case 'already_subscribed': {
          const { title } = TIERS[begun.tier];
          const detail = `The account already has ${title}: choose a lower tier at PATCH /api/subscription.`;
          return refuse(reply, 'state_conflict', { detail });
        }
        case 'limit': {
          const detail = 'Too many checkouts were begun: pay the newest one, or wait.';
          return refuse(reply, 'too_many_attempts', { detail, retry_after_s: begun.retryAfterS });
        }
        default:
          return refusePurchase(request, reply, begun.kind);
      }
    },
  });
}

function cancelSubscription({ subscriptions }: SubscriptionDeps): RouteOptions {
  return accountRoute({
    ...CHANGE,
    method: 'POST',
    url: '/api/subscription/cancel',
    summary: 'Cancel at the end of the paid period, or now',
    body: Type.Object({ at: Type.Enum(['period_end', 'now']) }, STRICT),
    bodyExample: { at: 'period_end' },
    handle: (request, reply) =>
      answerChange(request, reply, (by) => subscriptions.cancel({ ...by, ...request.body })),
  });
}

function payTestCheckout({ db, canBuy }: SubscriptionDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/billing/test/checkouts/:id',
    tag: 'subscription',
    summary: 'Pay a checkout of the test provider',
    description: NO_MONEY_MOVES,
    access: withFreshFactor(signedIn('billing:change')),
    params: Type.Object({ id: idOf('chk') }, STRICT),
    body: Type.Object({ outcome: Type.Enum(['paid', 'failed']) }, STRICT),
    bodyExample: { outcome: 'paid' },
    answers: { 200: answerOf(NO_MONEY_MOVES, Payment) },
    problems: [...PURCHASE, 'object_not_found', 'state_conflict'],
    async handle(request, reply) {
      const fault = purchaseRefusal(buyerOf(request), callerOf(request).account, canBuy);
      if (fault !== undefined) return refusePurchase(request, reply, fault.kind);
      const { accountId, ...requester } = requesterOf(request);
      const { outcome } = request.body;
      const paid = await payCheckout(db, request.params.id, accountId, outcome, requester);
      if (paid === undefined) return refuse(reply, 'object_not_found');
      if (paid.kind === 'ok') return { outcome, note: NO_MONEY_MOVES };
      return refuse(reply, 'state_conflict', { detail: NOT_OPEN[paid.status] });
    },
  });
}

type ChangedBy = ReturnType<typeof buyerOf>;

function buyerOf(request: FastifyRequest) {
  return { ...requesterOf(request), isVerified: callerOf(request).session!.isVerified };
}

async function answerChange(
  request: FastifyRequest,
  reply: FastifyReply,
  change: (by: ChangedBy) => Promise<SubscriptionChanged>,
) {
  const changed = await change(buyerOf(request));
  switch (changed.kind) {
    case 'ok':
      return bodyOf(Subscription, changed.subscription);
    case 'payment_required': {
      const detail = `Begin the checkout of ${TIERS[changed.tier].title}; its answer states the amount.`;
      return refuse(reply, 'payment_required', { detail, tier: changed.tier });
    }
    case 'subscription_required':
      return refuse(reply, 'subscription_required');
    default:
      return refusePurchase(request, reply, changed.kind);
  }
}

function refusePurchase(request: FastifyRequest, reply: FastifyReply, code: NoPurchase['kind']) {
  const { account } = callerOf(request);
  return refuse(reply, code, code === 'account_suspended' ? { ...suspensionOf(account) } : {});
}
