import type { AccountAccess, Entitlement } from '../../../domain/access/account-access.ts';
import {
  accountEntitlement,
  entitlementOf,
  isMemberActive,
  tierTooLowText,
} from '../../../domain/access/entitlement.ts';
import { mayDo, PERMISSIONS } from '../../../domain/access/roles.ts';
import { isSchemeId } from '../../../domain/access/scheme-rows.ts';
import { hasScope } from '../../../domain/access/scopes.ts';
import { suspensionOf } from '../../../domain/access/suspension.ts';
import type { Session } from '../../../domain/accounts/sessions.ts';
import type { Refusal } from '../../http/problems.ts';
import type { AccountRule } from './access-rule.ts';
import type { Caller } from './caller.ts';

/** Why a known account may not use a route; undefined if it may. */
export function refusalOf(
  rule: AccountRule,
  { account, key, session }: Caller,
): Refusal | undefined {
  const { scope = 'any' } = rule;
  const ofRole = session === undefined ? undefined : roleRefusal(rule, account, session);
  if (ofRole !== undefined) return ofRole;
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

/** Why a member may not do this; everyone may always see to the own sign-ins. */
function roleRefusal(
  { permission }: AccountRule,
  account: AccountAccess,
  { role }: Session,
): Refusal | undefined {
  if (!mayDo(role, permission)) {
    return ['permission_missing', { role, permission, roles: PERMISSIONS[permission] }];
  }
  if (permission === 'profile' || isMemberActive(account, role, Date.now())) return undefined;
  return ['membership_inactive', { role }];
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
