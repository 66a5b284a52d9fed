import { describe, expect, test } from 'vitest';
import { type AccountAccess, PAST_DUE_GRACE_MS } from './account-access.ts';
import { entitlementOf, tierChangesAtMs, tierEndsAtMs, tierOf } from './entitlement.ts';

const NOW = Date.UTC(2026, 0, 15);
type Subscription = NonNullable<AccountAccess['subscription']>;

const active: Subscription = {
  tier: 'pro',
  status: 'active',
  pastDueSinceMs: undefined,
  periodEndMs: NOW,
  cancelAtPeriodEnd: false,
};

function account(
  subscription: Subscription | undefined,
  status: AccountAccess['status'] = 'active',
): AccountAccess {
  return {
    id: 'acc_a',
    name: 'A',
    status,
    subscription,
    ratePerS: undefined,
    rateBurst: undefined,
    callsPerDay: undefined,
  };
}

const pastDue = (sinceMs: number): Subscription => {
  return { ...active, status: 'past_due', pastDueSinceMs: sinceMs };
};
const cancelled = (endMs: number): Subscription => {
  return { ...active, cancelAtPeriodEnd: true, periodEndMs: endMs };
};

describe('a Pro capability', () => {
  test.each([
    ['an active subscription', account(active), 'granted'],
    ['one whose period is over but renews', account({ ...active, periodEndMs: 0 }), 'granted'],
    ['none', account(undefined), 'subscription_required'],
    ['an ended one', account({ ...active, status: 'ended' }), 'subscription_required'],
    ['one cancelled, before its end', account(cancelled(NOW + 1)), 'granted'],
    ['one cancelled, at its end', account(cancelled(NOW)), 'subscription_required'],
    ['a failed payment', account(pastDue(NOW)), 'granted'],
    ['the last of 7 days', account(pastDue(NOW - PAST_DUE_GRACE_MS + 1)), 'granted'],
    ['7 days after', account(pastDue(NOW - PAST_DUE_GRACE_MS)), 'account_suspended'],
    ['a suspended account', account(active, 'suspended'), 'account_suspended'],
    ['a closed account', account(active, 'closed'), 'account_suspended'],
    ['Basic', account({ ...active, tier: 'basic' }), 'tier_too_low'],
    ['Institutional', account({ ...active, tier: 'institutional' }), 'granted'],
  ] as const)('with %s', (_, owner, kind) => {
    expect(entitlementOf(owner, 'history', NOW).kind).toBe(kind);
  });
});

test('a tier that is too low names the cheapest tier with the capability', () => {
  const basic = account({ ...active, tier: 'basic' });
  expect(entitlementOf(basic, 'stream', NOW)).toMatchObject({ tier: 'basic', needs: 'pro' });
  expect(entitlementOf(basic, 'api_manager', NOW)).toMatchObject({ needs: 'institutional' });
  expect(tierOf(basic, NOW)).toBe('basic');
});

test.each([
  ['never', active, undefined],
  ['at the end of a cancelled period', cancelled(NOW), NOW],
  ['7 days after a failed payment', pastDue(NOW), NOW + PAST_DUE_GRACE_MS],
  ['at the earlier of both', { ...cancelled(NOW + 5), pastDueSinceMs: NOW }, NOW + 5],
] as const)('a tier ends by the clock %s, to the millisecond', (_, subscription, endMs) => {
  const owner = account(subscription);
  expect(tierEndsAtMs(owner)).toBe(endMs);
  if (endMs === undefined) return;
  expect(tierOf(owner, endMs - 1)).toBe('pro');
  expect(tierOf(owner, endMs)).toBeUndefined();
});

test('a downgrade takes effect by the clock at the period’s end, to the millisecond', () => {
  const owner = account({ ...active, nextTier: 'basic' });
  expect([tierOf(owner, NOW - 1), tierOf(owner, NOW)]).toEqual(['pro', 'basic']);
  expect(tierEndsAtMs(owner)).toBeUndefined();
  expect([tierChangesAtMs(owner, NOW - 1), tierChangesAtMs(owner, NOW)]).toEqual([NOW, undefined]);
  const ending = account({ ...pastDue(NOW - PAST_DUE_GRACE_MS - 1), nextTier: 'basic' });
  expect(tierChangesAtMs(ending, NOW - 9)).toBe(NOW - 1);
  const past = account({ ...pastDue(NOW), nextTier: 'basic' });
  expect(tierChangesAtMs(past, NOW)).toBe(NOW + PAST_DUE_GRACE_MS);
});
