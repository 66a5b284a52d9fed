import type { AccountAccess, KeyAccess } from '../../lib/access/access.ts';
import { entitlementOf, tierTooLowText } from '../../lib/access/entitlement.ts';
import type { ProblemCode } from '../http/problem-catalogue.ts';
import type { ProblemMembers } from '../http/problems.ts';
import type { AccountRule } from './access-rule.ts';

/** Why a known account may not use a route; undefined when it may. */
export function denialOf(
  rule: AccountRule,
  account: AccountAccess,
  key: KeyAccess | undefined,
): [ProblemCode, ProblemMembers] | undefined {
  if (rule.scope !== undefined && key !== undefined && !key.scopes.includes(rule.scope)) {
    return ['scope_missing', { needs: rule.scope, has: key.scopes }];
  }
  if (rule.capability === undefined) return undefined;
  const entitlement = entitlementOf(account, rule.capability, Date.now());
  switch (entitlement.kind) {
    case 'granted':
      return undefined;
    case 'subscription_required':
      return ['subscription_required', {}];
    case 'account_suspended':
      return ['account_suspended', suspensionOf(account)];
    case 'tier_too_low': {
      const { tier, needs } = entitlement;
      return ['tier_too_low', { detail: tierTooLowText(entitlement), tier, needs }];
    }
  }
}

/** Why an account is suspended: a code, and a sentence of the operator where there is one. */
export function suspensionOf({ status, suspendedReason }: AccountAccess): ProblemMembers {
  if (status === 'closed') return { reason: 'closed', detail: 'The account was closed.' };
  if (status === 'suspended') {
    const told = suspendedReason === undefined ? {} : { detail: suspendedReason };
    return { reason: 'operator', ...told };
  }
  return { reason: 'payment_due', detail: 'A payment is due for over 7 days.' };
}
