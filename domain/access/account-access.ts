import type { Role } from './roles.ts';
import type { Scope } from './scopes.ts';
import type { Tier } from './tiers.ts';

/** After a failed payment, access stays complete for 7 days of 24 h. */
export const PAST_DUE_GRACE_MS = 7 * 24 * 60 * 60 * 1000;

/** The subscription of an account. Times are Unix ms. */
export interface SubscriptionAccess {
  readonly tier: Tier;
  readonly status: 'active' | 'past_due' | 'ended';
  readonly pastDueSinceMs: number | undefined;
  readonly periodEndMs: number;
  readonly cancelAtPeriodEnd: boolean;
  /** A lower tier from the period's end on; undefined = the same. */
  readonly nextTier?: Tier | undefined;
}

/** The access of an account, read from its rows and valid until they change. Times are Unix ms. */
export interface AccountAccess {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended' | 'closed';
  /** The operator's reason, shown to the account's users; undefined = not suspended. */
  readonly suspendedReason?: string | undefined;
  /** undefined = never subscribed. */
  readonly subscription: SubscriptionAccess | undefined;
  /** Set by the operator in place of the tier's limit; undefined = the tier's. */
  readonly ratePerS: number | undefined;
  readonly rateBurst: number | undefined;
  readonly callsPerDay: number | undefined;
  /** Whether API keys are refused: only authentication schemes let programs in. */
  readonly keysRefused?: boolean | undefined;
}

/** The limits of a desk, besides those of its account; undefined = the account's. */
export interface DeskAccess {
  readonly id: string;
  readonly name: string;
  readonly callsPerDay: number | undefined;
  /** Calls per second and burst, per process. */
  readonly rate: { readonly perS: number; readonly burst: number } | undefined;
  readonly connectionsMax: number | undefined;
  readonly symbols: ReadonlySet<string> | undefined;
}

/**
 * A known key that was neither revoked nor expired when it was identified, or the authentication
 * scheme that accepted a signature or token in place of a key.
 */
export interface KeyAccess {
  /** `key_…`, or `aut_…` of a scheme. */
  readonly id: string;
  /** `pil_live_…ab12`, or the name of a scheme. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  readonly expiresAtMs: number | undefined;
  /** When the token ends that was accepted; undefined = there is none. */
  readonly tokenEndsAtMs?: number | undefined;
  readonly account: AccountAccess;
  /** Desk that the key belongs to; undefined = none. */
  readonly desk?: DeskAccess | undefined;
}

/** The result of identifying a key. The client gets one answer for
 * `unknown`, `revoked` and `expired`. */
export type Identified =
  | { readonly kind: 'key'; readonly key: KeyAccess }
  | {
      readonly kind: 'refused';
      readonly fault: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
    }
  /** The key is good, the address is outside its allow-list. */
  | { readonly kind: 'address_refused' }
  /** The key is good, but its owner accepts only authentication schemes. */
  | { readonly kind: 'keys_refused' }
  /** PostgreSQL is unavailable, and the key is not cached or was not confirmed for too long. */
  | { readonly kind: 'unavailable' };

/** Whether the subscription of an account includes a capability now. */
export type Entitlement =
  | { readonly kind: 'granted'; readonly tier: Tier }
  | { readonly kind: 'subscription_required' }
  /** Suspended or closed, or a payment failed more than 7 days ago. */
  | { readonly kind: 'account_suspended' }
  | { readonly kind: 'tier_too_low'; readonly tier: Tier; readonly needs: Tier };

export interface TicketHolder {
  readonly account: AccountAccess;
  /** undefined when a session requested the ticket. */
  readonly keyId: string | undefined;
  /** The sign-in that requested the ticket: the socket ends when the sign-in ends. */
  readonly sessionHash?: Buffer | undefined;
  /** Role of the user who signed in; undefined with a key. */
  readonly role?: Role | undefined;
  /** When the token ends that requested the ticket, and the socket with it. */
  readonly tokenEndsAtMs?: number | undefined;
}

/** A limit and its remainder, for RateLimit-Policy and RateLimit. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  /** Length of the policy's window, and the time until the whole limit is available again. */
  readonly windowS: number;
  readonly resetS: number;
}

/** Whose limit a call has reached. */
export type LimitOwner = 'account' | 'desk';

/** The result for a call whose key and tier were accepted. `daily`: undefined = no daily limit. */
export type MeterVerdict =
  | { readonly kind: 'granted'; readonly burst: Allowance; readonly daily: Allowance | undefined }
  | {
      readonly kind: 'rate_limited';
      readonly of: LimitOwner;
      readonly burst: Allowance;
      readonly retryAfterS: number;
    }
  | {
      readonly kind: 'quota_exceeded';
      readonly of: LimitOwner;
      readonly burst: Allowance;
      readonly daily: Allowance;
      readonly used: number;
      /** RFC 3339, the next 00:00 UTC. */
      readonly resetsAt: string;
    }
  | { readonly kind: 'unavailable'; readonly burst: Allowance };

export interface MeteredCall {
  readonly account: AccountAccess;
  /** Desk of the key, whose limits hold too. */
  readonly desk?: DeskAccess | undefined;
  readonly keyId: string;
  /** Method and path pattern, e.g. `GET /api/pills/latest`. */
  readonly endpoint: string;
}
