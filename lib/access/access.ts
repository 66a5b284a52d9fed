import type { Tier } from './tiers.ts';

/** What a key may be limited to. `read`: REST; `stream`: sockets and their tickets. */
export const SCOPES = ['read', 'stream'] as const;
export type Scope = (typeof SCOPES)[number];

/** A payment that failed leaves full access for so long (days of 24 h). */
export const PAST_DUE_GRACE_MS = 7 * 24 * 60 * 60 * 1000;

/** What an account has bought. Times are Unix ms. */
export interface SubscriptionAccess {
  readonly tier: Tier;
  readonly status: 'active' | 'past_due' | 'ended';
  readonly pastDueSinceMs: number | undefined;
  readonly periodEndMs: number;
  readonly cancelAtPeriodEnd: boolean;
}

/** What an account may do: read from its rows, valid until it changes. Times are Unix ms. */
export interface AccountAccess {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'suspended' | 'closed';
  /** What the operator tells its users; undefined = not suspended. */
  readonly suspendedReason?: string | undefined;
  /** undefined = never subscribed. */
  readonly subscription: SubscriptionAccess | undefined;
  /** Instead of the tier's; set by the operator. */
  readonly ratePerS: number | undefined;
  readonly rateBurst: number | undefined;
  readonly callsPerDay: number | undefined;
}

/** A key that is known, not revoked, and was not expired when it was identified. */
export interface KeyAccess {
  readonly id: string;
  /** `pil_live_…ab12` */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  readonly expiresAtMs: number | undefined;
  readonly account: AccountAccess;
}

/** Why a key opens nothing. The first five are one and the same answer to the client. */
export type KeyFault = 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';

/** Whose a key is. */
export type Identified =
  | { readonly kind: 'key'; readonly key: KeyAccess }
  | { readonly kind: 'refused'; readonly fault: KeyFault }
  /** The key is good, the address is outside its allow-list. */
  | { readonly kind: 'address_refused' }
  /** PostgreSQL is away: the key is not known here, or was not confirmed for too long. */
  | { readonly kind: 'unavailable' };

/** Whether an account may use a capability now, by its subscription alone. */
export type Entitlement =
  | { readonly kind: 'granted'; readonly tier: Tier }
  | { readonly kind: 'subscription_required' }
  /** Also a payment that failed more than 7 days ago. */
  | { readonly kind: 'account_suspended' }
  | { readonly kind: 'tier_too_low'; readonly tier: Tier; readonly needs: Tier };

/** Identifies keys from memory; follows every change within a second. */
export interface Keyring {
  /**
   * Whose key it is. Synchronous when the key was seen before (the hot path), else one look-up.
   * @param text as it came in the header; undefined when there was none
   * @param address the client's, as the server sees it
   */
  identify(text: string | undefined, address: string): Identified | Promise<Identified>;
  /** The same for a key's id: a socket's key, a ticket's. */
  identifyById(keyId: string, address: string): Promise<Identified>;
  /** An account's access, for signed-in users; undefined when there is none of this id. */
  account(accountId: string): Promise<AccountAccess | undefined | 'unavailable'>;
  /** Redeems a single-use ticket. */
  redeemTicket(ticket: string): Promise<TicketHolder | undefined | 'unavailable'>;
  /**
   * Calls back when the access of an account may have changed; undefined = of any: ask again for
   * every open socket. @returns what ends it
   */
  onChange(listener: (accountId: string | undefined) => void): () => void;
  /** Whether PostgreSQL confirmed within the last second that nothing has changed unseen. */
  isFresh(): boolean;
  /** Known keys are no longer accepted: PostgreSQL is away for longer than the stated time. */
  isStale(): boolean;
  close(): Promise<void>;
}

export interface TicketHolder {
  readonly account: AccountAccess;
  /** undefined when a session asked for it. */
  readonly keyId: string | undefined;
  /** The sign-in that asked for it: the socket ends with it. */
  readonly sessionHash?: Buffer | undefined;
}

/** A limit and what is left of it, for RateLimit-Policy and RateLimit. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  /** Length of the policy's window, and until it is full again. */
  readonly windowS: number;
  readonly resetS: number;
}

/** What became of a call that passed key and tier. `daily` is undefined without a daily limit. */
export type Taken =
  | { readonly kind: 'granted'; readonly burst: Allowance; readonly daily: Allowance | undefined }
  | { readonly kind: 'rate_limited'; readonly burst: Allowance; readonly retryAfterS: number }
  | {
      readonly kind: 'quota_exceeded';
      readonly burst: Allowance;
      readonly daily: Allowance;
      readonly used: number;
      /** RFC 3339, the next 00:00 UTC. */
      readonly resetsAt: string;
    }
  | { readonly kind: 'unavailable'; readonly burst: Allowance };

/** Counts calls: burst limits in this process, quotas exactly over all of them. */
export interface Meter {
  /** Takes one call of an account that has a tier. Synchronous without a daily limit. */
  take(call: MeteredCall): Taken | Promise<Taken>;
  /** After a 5xx of ours; best effort. */
  giveBack(call: MeteredCall): void;
  /** What is known of the limits without taking anything: for answers that cost nothing. */
  peek(account: AccountAccess): {
    readonly burst: Allowance;
    readonly daily: Allowance | undefined;
  };
  close(): Promise<void>;
}

export interface MeteredCall {
  readonly account: AccountAccess;
  readonly keyId: string;
  /** Method and path pattern, e.g. `GET /api/pills/latest`. */
  readonly endpoint: string;
}
