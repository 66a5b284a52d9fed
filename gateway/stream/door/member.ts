import type { AccountAccess, Identified, KeyAccess, Keyring } from '../../../lib/access/access.ts';
import { entitlementOf, tierEndsAtMs, tierTooLowText } from '../../../lib/access/entitlement.ts';
import { TIERS, type Tier } from '../../../lib/access/tiers.ts';
import type { Refusal } from './admission.ts';

/** Whose a socket is. Times are Unix ms. */
export interface Member {
  readonly accountId: string;
  readonly tier: Tier;
  /** undefined when a session asked for the ticket. */
  readonly keyId: string | undefined;
  /** The sign-in that it lives by; undefined with a key. */
  readonly sessionHash: Buffer | undefined;
  /** `pil_live_…ab12`, or `session`. */
  readonly hint: string;
  /** When its right ends by the clock alone. */
  readonly endsAtMs: number;
  readonly connectionsMax: number;
  readonly symbolsMax: number;
}

/** Who may come in. A dedicated process is for one account alone. */
export interface Gate extends Keyring {
  readonly onlyAccountId?: string | undefined;
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
  keyring: Gate,
  credential: Credential,
  address: string,
): Promise<Admitted> {
  if (credential.kind === 'key') {
    return admitKey(await keyring.identify(credential.key, address), keyring);
  }
  const holder = await keyring.redeemTicket(credential.ticket);
  if (holder === 'unavailable') return refused(UNAVAILABLE);
  if (holder === undefined) return refused(KEY_INVALID);
  if (holder.keyId === undefined) return admitAccount(holder.account, holder.sessionHash, keyring);
  return admitKey(await keyring.identifyById(holder.keyId, address), keyring);
}

/** Asks again for a socket that is open. */
export async function confirm(keyring: Gate, member: Member, address: string): Promise<Admitted> {
  if (member.keyId === undefined) {
    const account = await keyring.account(member.accountId);
    if (account === 'unavailable') return refused(UNAVAILABLE);
    return account === undefined
      ? refused(SUBSCRIPTION_ENDED)
      : admitAccount(account, member.sessionHash, keyring);
  }
  const identified = await keyring.identifyById(member.keyId, address);
  if (identified.kind === 'refused') {
    return refused(identified.fault === 'expired' ? CREDENTIAL_EXPIRED : KEY_REVOKED);
  }
  return admitKey(identified, keyring);
}

function admitKey(identified: Identified, gate: Gate): Admitted {
  if (identified.kind === 'unavailable') return refused(UNAVAILABLE);
  if (identified.kind === 'refused') return refused(KEY_INVALID);
  if (identified.kind === 'address_refused') return refused(ADDRESS_REFUSED);
  const { key } = identified;
  if (!key.scopes.includes('stream')) return refused(SCOPE_MISSING);
  return admitAccount(key.account, key, gate);
}

function admitAccount(
  account: AccountAccess,
  by: KeyAccess | Buffer | undefined,
  { onlyAccountId }: Gate,
): Admitted {
  const isDedicated = onlyAccountId !== undefined;
  if (isDedicated && account.id !== onlyAccountId) return refused(NOT_YOURS);
  const key = Buffer.isBuffer(by) ? undefined : by;
  const capability = isDedicated ? 'dedicated_stream' : 'stream';
  const entitlement = entitlementOf(account, capability, Date.now());
  if (entitlement.kind === 'tier_too_low') {
    const { tier, needs } = entitlement;
    const message = tierTooLowText(entitlement, isDedicated ? 'dedicated sockets' : 'streams');
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
      sessionHash: Buffer.isBuffer(by) ? by : undefined,
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
const NOT_YOURS: Refusal = {
  code: 'key_invalid',
  message: 'This dedicated socket takes keys of its own account alone.',
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
/** The sign-in whose ticket opened a socket is over. */
export const SIGNED_OUT: Refusal = {
  code: 'credential_expired',
  message: 'The sign-in that this connection came from has ended. Sign in, and ask for a ticket.',
  more: {},
};
/** PostgreSQL is away, or was for too long. */
export const UNAVAILABLE: Refusal = {
  code: 'accounts_unavailable',
  message: 'Accounts cannot be looked up right now.',
  more: { retry_after_ms: 1_000 },
};
