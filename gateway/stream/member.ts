import type { AccountAccess, Identified, KeyAccess, Keyring } from '../../lib/access/access.ts';
import { entitlementOf, tierEndsAtMs } from '../../lib/access/entitlement.ts';
import { TIERS, type Tier } from '../../lib/access/tiers.ts';
import type { Refusal } from './admission.ts';

/** Whose a socket is. Times are Unix ms. */
export interface Member {
  readonly accountId: string;
  readonly tier: Tier;
  /** undefined when a session asked for the ticket. */
  readonly keyId: string | undefined;
  /** `pil_live_…ab12`, or `session`. */
  readonly hint: string;
  /** When its right ends by the clock alone. */
  readonly endsAtMs: number;
  readonly connectionsMax: number;
  readonly symbolsMax: number;
}

/** How a client says who it is. */
export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'ticket'; readonly ticket: string };

export type Admitted =
  | { readonly ok: true; readonly member: Member }
  | { readonly ok: false; readonly refusal: Refusal };

/** Finds out whose a credential is, and whether it may stream now. Never rejects. */
export async function authenticate(
  keyring: Keyring,
  credential: Credential,
  address: string,
): Promise<Admitted> {
  if (credential.kind === 'key') {
    return admitKey(await keyring.identify(credential.key, address));
  }
  const holder = await keyring.redeemTicket(credential.ticket);
  if (holder === 'unavailable') return refused(UNAVAILABLE);
  if (holder === undefined) return refused(KEY_INVALID);
  if (holder.keyId === undefined) return admitAccount(holder.account, undefined);
  return admitKey(await keyring.identifyById(holder.keyId, address));
}

/** Asks again for a socket that is open. */
export async function confirm(
  keyring: Keyring,
  member: Member,
  address: string,
): Promise<Admitted> {
  if (member.keyId === undefined) {
    const account = await keyring.account(member.accountId);
    if (account === 'unavailable') return refused(UNAVAILABLE);
    return account === undefined ? refused(SUBSCRIPTION_ENDED) : admitAccount(account, undefined);
  }
  const identified = await keyring.identifyById(member.keyId, address);
  if (identified.kind === 'refused') {
    return refused(identified.fault === 'expired' ? CREDENTIAL_EXPIRED : KEY_REVOKED);
  }
  return admitKey(identified);
}

function admitKey(identified: Identified): Admitted {
  if (identified.kind === 'unavailable') return refused(UNAVAILABLE);
  if (identified.kind === 'refused') return refused(KEY_INVALID);
  if (identified.kind === 'address_refused') return refused(ADDRESS_REFUSED);
  const { key } = identified;
  return key.scopes.includes('stream') ? admitAccount(key.account, key) : refused(SCOPE_MISSING);
}

function admitAccount(account: AccountAccess, key: KeyAccess | undefined): Admitted {
  const entitlement = entitlementOf(account, 'stream', Date.now());
  if (entitlement.kind === 'tier_too_low') {
    const { tier, needs } = entitlement;
    const message = `${TIERS[needs].title} has streams; the account has ${TIERS[tier].title}.`;
    return refused({ code: 'tier_too_low', message, more: { tier, needs } });
  }
  if (entitlement.kind !== 'granted') return refused(SUBSCRIPTION_ENDED);
  const { tier } = entitlement;
  const never = Number.POSITIVE_INFINITY;
  return {
    ok: true,
    member: {
      accountId: account.id,
      tier,
      keyId: key?.id,
      hint: key?.hint ?? 'session',
      endsAtMs: Math.min(key?.expiresAtMs ?? never, tierEndsAtMs(account) ?? never),
      connectionsMax: TIERS[tier].streamConnections,
      symbolsMax: TIERS[tier].streamSymbols,
    },
  };
}

function refused(refusal: Refusal): Admitted {
  return { ok: false, refusal };
}

const KEY_INVALID: Refusal = {
  code: 'key_invalid',
  message: 'The key or ticket is missing, malformed, unknown, used, revoked or expired.',
  more: {},
};
const KEY_REVOKED: Refusal = {
  code: 'key_revoked',
  message: 'The key of this connection was revoked.',
  more: {},
};
const CREDENTIAL_EXPIRED: Refusal = {
  code: 'credential_expired',
  message: 'The key of this connection has expired. Connect with its successor.',
  more: {},
};
const SCOPE_MISSING: Refusal = {
  code: 'scope_missing',
  message: 'The key was not made for streams: it lacks the scope "stream".',
  more: {},
};
const ADDRESS_REFUSED: Refusal = {
  code: 'address_refused',
  message: 'The key may not be used from this address.',
  more: {},
};
const SUBSCRIPTION_ENDED: Refusal = {
  code: 'subscription_ended',
  message: 'The account has no subscription in force; GET /api/account tells why.',
  more: {},
};
/** PostgreSQL is away, or was for too long. */
export const UNAVAILABLE: Refusal = {
  code: 'accounts_unavailable',
  message: 'Accounts cannot be looked up right now.',
  more: { retry_after_ms: 1_000 },
};
