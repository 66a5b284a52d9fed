import type {
  AccountAccess,
  Entitlement,
  KeyAccess,
} from '../../../domain/access/account-access.ts';
import {
  accountEntitlement,
  entitlementOf,
  tierTooLowText,
} from '../../../domain/access/entitlement.ts';
import { isSchemeId } from '../../../domain/access/scheme-rows.ts';
import { hasScope } from '../../../domain/access/scopes.ts';
import { suspensionOf } from '../../../domain/access/suspension.ts';
import type { Refusal } from '../../http/problems.ts';
import type { AccountRule } from './access-rule.ts';

/** Why a known account may not use a route; undefined if it may. */
export function refusalOf(
  rule: AccountRule,
  account: AccountAccess,
  key: KeyAccess | undefined,
): Refusal | undefined {
  const { scope = 'any' } = rule;
  if (scope !== 'any' && key !== undefined && !hasScope(key.scopes, scope)) {
    return ['scope_missing', { needs: scope, has: key.scopes }];
  }
  const isScheme = key !== undefined && isSchemeId(key.id);
  if (isScheme) {
    const entitlement = entitlementOf(account, 'custom_authentication', Date.now());
    if (entitlement.kind === 'tier_too_low') return tierRefusal(entitlement);
  }
  if (rule.capability === undefined) return undefined;
  const entitlement = entitlementOf(account, rule.capability, Date.now());
  switch (entitlement.kind) {
    case 'granted':
      return undefined;
    case 'subscription_required':
    case 'account_suspended':
      return noTierRefusal(account);
    case 'tier_too_low':
      return tierRefusal(entitlement);
  }
}

export function tierRefusal(
  entitlement: Extract<Entitlement, { readonly kind: 'tier_too_low' }>,
): Refusal {
  const { tier, needs } = entitlement;
  return ['tier_too_low', { detail: tierTooLowText(entitlement), tier, needs }];
}

/** Why an account has no tier now. */
export function noTierRefusal(account: AccountAccess): Refusal {
  return accountEntitlement(account, Date.now()).kind === 'account_suspended'
    ? ['account_suspended', { ...suspensionOf(account) }]
    : ['subscription_required', {}];
}
