import type { FastifyRequest } from 'fastify';
import type { AccountAccess } from '../../../domain/access/account-access.ts';
import type { Permission } from '../../../domain/access/roles.ts';
import type { Scope } from '../../../domain/access/scopes.ts';
import type { Capability } from '../../../domain/access/tiers.ts';
import type { Refusal } from '../../http/problems.ts';

/** Who may call a route. Every route names its rule; a route without one cannot be added. */
export type AccessRule = OpenRule | GeneratorRule | AccountRule;

/** The credential of a generator, as at ingest; calls from one network are limited. */
interface GeneratorRule {
  readonly by: 'generator';
}

interface OpenRule {
  readonly by: 'anyone';
  /** The route queries the database, so calls from one network are limited. */
  readonly isLimited?: true;
}

export interface AccountRule {
  readonly by: 'account';
  /** Accepted credentials; a key takes precedence over a session. */
  readonly accepts: readonly ('key' | 'session')[];
  /** What the role of a session's user must permit; a key has scopes instead. */
  readonly permission: Permission;
  /** Capability that the tier must include; undefined: any account, even without a subscription. */
  readonly capability?: Capability;
  /** Scope that the key must have; `any`: every key may. Stated by each rule that accepts keys. */
  readonly scope?: Scope | 'any';
  /** Whether a session must have proved its second factor lately, where the user has one. */
  readonly needsFreshFactor?: true;
  /** Whether a call counts against quota and limits. */
  readonly isMetered: boolean;
  /** For a metered route: decides whether a call is exempt; undefined: the call counts. */
  readonly waive?: (request: FastifyRequest, account: AccountAccess) => Waiver | undefined;
}

/** `free`: the call does not count. A refusal: the proof offered for the waiver is invalid. */
export type Waiver = 'free' | Refusal;

/** Needs no credential. */
export const OPEN: AccessRule = { by: 'anyone' };

/** Needs the credential of a generator, and shows what belongs to it. */
export const GENERATOR: AccessRule = { by: 'generator' };

/** Needs no credential, but queries the database. */
export const OPEN_LIMITED: AccessRule = { by: 'anyone', isLimited: true };

/** A read with a capability of the tier, by key or session; counts as one call of the quota. */
export function metered(capability: Capability): AccountRule {
  const accepts = ['key', 'session'] as const;
  return {
    by: 'account',
    accepts,
    permission: 'pills:read',
    capability,
    scope: 'read',
    isMetered: true,
  };
}

/** By session only: a leaked key must not change access. Unsafe methods need the CSRF token. */
export function signedIn(permission: Permission, capability?: Capability): AccountRule {
  const of = capability === undefined ? {} : { capability };
  return { by: 'account', accepts: ['session'], permission, isMetered: false, ...of };
}

/**
 * The same rule for what a stolen session would be used for: keys, secrets, payment. A session of a
 * user with a second factor must have proved it within the last 10 minutes.
 */
export function withFreshFactor(rule: AccountRule): AccountRule {
  return { ...rule, needsFreshFactor: true };
}

/** Free: by session, or by key with this scope. @param capability that the tier must include */
export function ownAccount(
  scope: Scope | 'any',
  permission: Permission,
  capability?: Capability,
): AccountRule {
  return { ...signedIn(permission, capability), accepts: ['key', 'session'], scope };
}

/**
 * Whether a session must repeat its CSRF token: for changes, and for reads that cost a call, since
 * the cookie accompanies a link on another site too (SameSite=Lax).
 */
export function needsCsrfToken({ isMetered }: AccountRule, method: string): boolean {
  return isMetered || (method !== 'GET' && method !== 'HEAD');
}

/** Why a route with this rule may not be added; undefined if it may. */
export function ruleFault(rule: AccessRule | undefined): string | undefined {
  if (rule === undefined) return 'names no access rule';
  if (rule.by !== 'account' || !rule.accepts.includes('key') || rule.scope !== undefined) {
    return undefined;
  }
  return 'accepts keys but names no scope';
}
