import type { FastifyRequest } from 'fastify';
import type { AccountAccess, Scope } from '../../lib/access/access.ts';
import type { Capability } from '../../lib/access/tiers.ts';
import type { ProblemCode } from '../http/problem-catalogue.ts';
import type { ProblemMembers } from '../http/problems.ts';

/** Who may call a route. Every route names its rule: one that does not cannot be added. */
export type AccessRule = OpenRule | AccountRule;

export interface OpenRule {
  readonly by: 'nobody';
  /** It asks the database: calls from one network are limited. */
  readonly isLimited?: true;
}

export interface AccountRule {
  readonly by: 'account';
  /** What proves the account; a key goes before a session. */
  readonly accepts: readonly ('key' | 'session')[];
  /** What the tier must have; undefined = any account, with or without a subscription. */
  readonly capability?: Capability;
  /** What the key must be made for. */
  readonly scope?: Scope;
  /** Whether it counts as a call, and passes the limits. */
  readonly isMetered: boolean;
  /** Of a metered route: which calls do not count all the same. undefined: this one counts. */
  readonly waive?: (request: FastifyRequest, account: AccountAccess) => Waiver | undefined;
}

/** `free`: it passes and does not count. Else what was offered for it is no good: the problem. */
export type Waiver = 'free' | readonly [ProblemCode, ProblemMembers];

/** Needs no credential. */
export const OPEN: OpenRule = { by: 'nobody' };

/** Needs no credential, and asks the database. */
export const OPEN_LIMITED: OpenRule = { by: 'nobody', isLimited: true };

/** A read that the tier must have; one call of the quota. */
export function metered(capability: Capability): AccountRule {
  return { by: 'account', accepts: ['key'], capability, scope: 'read', isMetered: true };
}

/** Of the account itself, free: by key or session. */
export const OWN_ACCOUNT: AccountRule = {
  by: 'account',
  accepts: ['key', 'session'],
  isMetered: false,
};

/** About the account's sockets, free: by key or session, where the tier has streams. */
export const STREAMING: AccountRule = {
  by: 'account',
  accepts: ['key', 'session'],
  capability: 'stream',
  scope: 'stream',
  isMetered: false,
};

/** Changes who may read: a leaked key must not do that. Unsafe methods need the CSRF token. */
export const SIGNED_IN: AccountRule = { by: 'account', accepts: ['session'], isMetered: false };
