import type {
  AccountAccess,
  Identified,
  KeyAccess,
  TicketHolder,
} from '../../../domain/access/account-access.ts';
import {
  entitlementOf,
  isMemberActive,
  tierChangesAtMs,
  tierTooLowText,
} from '../../../domain/access/entitlement.ts';
import type { Keyring } from '../../../domain/access/keyring.ts';
import { isSchemeId } from '../../../domain/access/scheme-rows.ts';
import { suspensionOf } from '../../../domain/access/suspension.ts';
import { type Capability, TIERS } from '../../../domain/access/tiers.ts';
import type { Authenticator } from '../../../domain/authentication/authenticator.ts';
import type { ClientProof } from '../../http/client-proof.ts';
import type { Principal } from '../hub/principal.ts';
import type { FatalName } from '../protocol/error-codes.ts';
import type { Refusal } from './connection-limiter.ts';

/** What open connections are checked by. */
export interface OpenKeyring extends Keyring {
  readonly onlyAccountId?: string | undefined;
}

/** The keyring of a stream process; a dedicated process serves a single account. */
export interface StreamKeyring extends OpenKeyring {
  readonly authenticator: Pick<Authenticator, 'identify'>;
}

/** The credential of a client. */
export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'ticket'; readonly ticket: string }
  | { readonly kind: 'proof'; readonly proof: ClientProof };

export type Authentication =
  | { readonly ok: true; readonly principal: Principal }
  | { readonly ok: false; readonly refusal: Refusal };

/** Finds the account of a credential, and checks that it may stream now. Never rejects. */
export async function authenticate(
  keyring: StreamKeyring,
  credential: Credential,
  address: string,
): Promise<Authentication> {
  if (credential.kind === 'key') {
    return authenticateKey(await keyring.identify(credential.key, address), keyring);
  }
  if (credential.kind === 'proof') return authenticateProof(keyring, credential.proof, address);
  const holder = await keyring.redeemTicket(credential.ticket);
  if (holder === 'unavailable') return UNAVAILABLE;
  if (holder === undefined) return KEY_INVALID;
  if (holder.keyId === undefined) return authenticateAccount(holder.account, holder, keyring);
  const identified = await keyring.identifyById(holder.keyId, address);
  return authenticateKey(withTokenEnd(identified, holder.tokenEndsAtMs), keyring);
}

async function authenticateProof(
  keyring: StreamKeyring,
  proof: ClientProof,
  address: string,
): Promise<Authentication> {
  if (proof.kind === 'mixed') return MIXED;
  const verdict = await keyring.authenticator.identify(proof, address);
  switch (verdict.kind) {
    case 'key':
      return authenticateKey(verdict, keyring);
    case 'refused':
      return verdict.fault.isShown ? refused('key_invalid', verdict.fault.detail) : PROOF_INVALID;
    case 'replayed':
      return REPLAYED;
    case 'nonces_full':
      return SIGNED_TOO_OFTEN;
    case 'issuer_unavailable':
      return ISSUER_UNAVAILABLE;
    case 'address_refused':
      return ADDRESS_REFUSED;
    case 'unavailable':
      return UNAVAILABLE;
  }
}

/** The token that requested a ticket, or opened a connection, may end before its scheme does. */
function withTokenEnd(identified: Identified, tokenEndsAtMs: number | undefined): Identified {
  if (identified.kind !== 'key' || tokenEndsAtMs === undefined) return identified;
  if (Date.now() >= tokenEndsAtMs) return { kind: 'refused', fault: 'expired' };
  return { kind: 'key', key: { ...identified.key, tokenEndsAtMs } };
}

/** Checks again whether an open connection may stream. */
export async function reauthenticate(
  keyring: OpenKeyring,
  principal: Principal,
  address: string,
): Promise<Authentication> {
  if (principal.keyId === undefined) {
    const account = await keyring.account(principal.accountId);
    if (account === 'unavailable') return UNAVAILABLE;
    return account === undefined
      ? SUBSCRIPTION_ENDED
      : authenticateAccount(account, principal, keyring);
  }
  const found = await keyring.identifyById(principal.keyId, address);
  const identified = withTokenEnd(found, principal.tokenEndsAtMs);
  if (identified.kind === 'refused') {
    return identified.fault === 'expired' ? CREDENTIAL_EXPIRED : KEY_REVOKED;
  }
  return authenticateKey(identified, keyring);
}

function authenticateKey(identified: Identified, keyring: OpenKeyring): Authentication {
  if (identified.kind === 'unavailable') return UNAVAILABLE;
  if (identified.kind === 'refused') return KEY_INVALID;
  if (identified.kind === 'address_refused') return ADDRESS_REFUSED;
  if (identified.kind === 'keys_refused') return KEYS_REFUSED;
  const { key } = identified;
  if (!key.scopes.includes('stream')) return SCOPE_MISSING;
  return authenticateAccount(key.account, key, keyring);
}

/** The sign-in of a user whose ticket opened a connection; a ticket of the demo has none. */
type SignIn = Pick<TicketHolder, 'sessionHash' | 'role'>;

function authenticateAccount(
  account: AccountAccess,
  by: KeyAccess | SignIn,
  { onlyAccountId }: OpenKeyring,
): Authentication {
  const isDedicated = onlyAccountId !== undefined;
  if (isDedicated && account.id !== onlyAccountId) return OTHER_ACCOUNT;
  const key = 'scopes' in by ? by : undefined;
  const { sessionHash, role }: SignIn = 'scopes' in by ? {} : by;
  const isScheme = key !== undefined && isSchemeId(key.id);
  const capability = isDedicated ? 'dedicated_stream' : 'stream';
  const nowMs = Date.now();
  const entitlement = isScheme
    ? schemeEntitlement(account, capability, nowMs)
    : entitlementOf(account, capability, nowMs);
  if (entitlement.kind === 'tier_too_low') {
    const { tier, needs } = entitlement;
    const message = tierTooLowText(entitlement, isDedicated ? 'dedicated sockets' : 'streams');
    return refused('tier_too_low', message, { tier, needs });
  }
  if (entitlement.kind === 'account_suspended') {
    const { detail, reason } = suspensionOf(account);
    return refused('account_suspended', detail, { reason });
  }
  if (entitlement.kind !== 'granted') return SUBSCRIPTION_ENDED;
  if (role !== undefined && !isMemberActive(account, role, nowMs)) return MEMBERSHIP_INACTIVE;
  const { tier } = entitlement;
  const never = Number.POSITIVE_INFINITY;
  return {
    ok: true,
    principal: {
      accountId: account.id,
      tier,
      keyId: key?.id,
      sessionHash,
      role,
      tokenEndsAtMs: key?.tokenEndsAtMs,
      hint: key?.hint ?? 'session',
      endsAtMs: Math.min(
        key?.expiresAtMs ?? never,
        key?.tokenEndsAtMs ?? never,
        tierChangesAtMs(account, nowMs) ?? never,
      ),
      desk: key?.desk,
      connectionsMax: TIERS[tier].streamConnections,
      symbolsMax: TIERS[tier].streamSymbols,
    },
  };
}

/** A scheme needs a tier that has schemes, besides what it is used for. */
function schemeEntitlement(account: AccountAccess, capability: Capability, nowMs: number) {
  const ofSchemes = entitlementOf(account, 'custom_authentication', nowMs);
  return ofSchemes.kind === 'granted' ? entitlementOf(account, capability, nowMs) : ofSchemes;
}

export function refusalOf(code: FatalName, message: string, more: Refusal['more'] = {}): Refusal {
  return { code, message, more };
}

function refused(...refusal: Parameters<typeof refusalOf>) {
  return { ok: false, refusal: refusalOf(...refusal) } as const;
}

const KEY_INVALID = refused(
  'key_invalid',
  'The key or ticket is missing, malformed, unknown, used, revoked or expired.',
);
const PROOF_INVALID = refused(
  'key_invalid',
  'The signature or token is not valid. POST /api/authentication/check says which part fails.',
);
const REPLAYED = refused(
  'key_invalid',
  'The signature was used before. Sign each connection again, with a new nonce.',
);
const SIGNED_TOO_OFTEN = refused(
  'too_fast',
  'The scheme has signed too many requests lately. Connect again in a minute.',
  { retry_after_ms: 60_000 },
);
const MIXED = refused('key_invalid', 'Send only a key, only a signature, or only a token.');
const KEYS_REFUSED = refused(
  'keys_refused',
  'The account accepts only signatures and tokens of its authentication schemes, not keys.',
);
const OTHER_ACCOUNT = refused(
  'key_invalid',
  'This dedicated socket accepts only keys of its own account.',
);
const KEY_REVOKED = refused('key_revoked', 'The key of this connection was revoked.');
const CREDENTIAL_EXPIRED = refused(
  'credential_expired',
  'The key of this connection has expired. Connect with a new key.',
);
const SCOPE_MISSING = refused('scope_missing', 'The key lacks the scope "stream".');
const ADDRESS_REFUSED = refused('address_refused', 'The key may not be used from this address.');
const SUBSCRIPTION_ENDED = refused(
  'subscription_ended',
  'The account has no active subscription. Subscribe at POST /api/subscription/checkout.',
);
const MEMBERSHIP_INACTIVE = refused(
  'subscription_ended',
  'The tier of the account has no API manager, so only its owners have access.',
);
/** The sign-in whose ticket opened the connection has ended. */
export const SIGNED_OUT = refused(
  'credential_expired',
  'The sign-in that opened this connection has ended. Sign in and request a new ticket.',
);
const ISSUER_UNAVAILABLE = refused(
  'accounts_unavailable',
  'The public keys of the issuer of the token cannot be read. Check the server at `jwks_url`.',
  { retry_after_ms: 30_000 },
);
/** PostgreSQL is unreachable, or was for too long. */
export const UNAVAILABLE = refused(
  'accounts_unavailable',
  'Accounts are temporarily unavailable. Try again.',
  { retry_after_ms: 1_000 },
);
