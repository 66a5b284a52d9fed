import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type {
  AccountAccess,
  Identified,
  KeyAccess,
  Keyring,
  Meter,
  MeteredCall,
  Taken,
} from '../../lib/access/access.ts';
import { tierOf } from '../../lib/access/entitlement.ts';
import type { KeyUse } from '../../lib/access/key-use.ts';
import { rateHeaders } from '../../lib/access/rate-headers.ts';
import type { Session } from '../../lib/accounts/sessions.ts';
import type { ProblemCode } from '../http/problem-catalogue.ts';
import type { ProblemMembers } from '../http/problems.ts';
import { refuse } from '../http/refuse.ts';
import type { AccountRule, Waiver } from './access-rule.ts';
import { denialOf } from './denial.ts';
import { REFUSAL_AFTER_MS, REFUSALS_HELD_MAX } from './limits.ts';
import { isReference } from './openapi.ts';
import { hasCsrfToken, type SessionFinder } from './session-cookie.ts';
import { createUnmeteredLimits } from './unmetered.ts';

export interface GuardOptions {
  readonly keyring: Keyring;
  readonly meter: Meter;
  readonly keyUse: KeyUse;
  readonly findSession: SessionFinder;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The call that was taken, to be given back after a 5xx. */
    meteredCall: MeteredCall | undefined;
    /** When a refusal of the credential may leave, `performance.now()`. */
    refusableAtMs: number;
  }
}

/**
 * Creates the hook that stands before every route with an account rule: who is it, may it, has it
 * calls left; in this order. A key that was seen before, on a tier without a daily limit, costs no
 * turn of the event loop.
 */
export function createGuard(options: GuardOptions): onRequestHookHandler {
  const { keyring, findSession } = options;
  const refusals = createRefusals();
  const unmetered = createUnmeteredLimits();

  const onKey = (rule: AccountRule, request: FastifyRequest, reply: FastifyReply, done: Done) => {
    const identified = keyring.identify(headerOf(request), request.ip);
    if (!(identified instanceof Promise)) return decide(identified);
    identified.then(decide, done);
    return undefined;

    function decide(who: Identified): void {
      if (who.kind === 'refused') refusals.send(request, reply, 'key_invalid');
      else if (who.kind === 'address_refused') refuse(reply, 'address_refused');
      else if (who.kind === 'unavailable') {
        refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
      } else {
        const { key } = who;
        options.keyUse.note(key.id, request.ip);
        request.caller = { account: key.account, key, session: undefined };
        const waiver = rule.waive?.(request, key.account);
        const isMetered = rule.isMetered && waiver === undefined;
        const flood = isMetered ? undefined : unmetered.ofAccount(key.account);
        if (flood !== undefined) {
          tellLimits(options.meter, reply, key.account);
          refuse(reply, ...flood);
        } else admit(options, rule, waiver, key, request, reply, done);
      }
    }
  };

  /** @returns whether it may go on; a reply is no answer to that, since awaiting one gives nothing */
  const onSession = async (
    rule: AccountRule,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<boolean> => {
    const flood = unmetered.ofAddress(request.ip);
    if (flood !== undefined) {
      refuse(reply, ...flood);
      return false;
    }
    const found = await findSession(request);
    if (found === 'unavailable') refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
    else if (found === undefined) {
      const code = rule.accepts.includes('key') ? 'key_invalid' : 'session_required';
      refusals.send(request, reply, code);
    } else return enter(rule, request, reply, found);
    return false;
  };
  const enter = async (
    rule: AccountRule,
    request: FastifyRequest,
    reply: FastifyReply,
    session: Session,
  ): Promise<boolean> => {
    const account = await keyring.account(session.accountId);
    if (account === 'unavailable' || account === undefined) {
      refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
      return false;
    }
    request.caller = { account, key: undefined, session };
    tellLimits(options.meter, reply, account);
    if (!isSafe(request.method) && !hasCsrfToken(request, session)) {
      refuse(reply, 'csrf_token_invalid');
      return false;
    }
    const denial = denialOf(rule, account, undefined) ?? unmetered.ofAccount(account);
    if (denial !== undefined) refuse(reply, ...denial);
    return denial === undefined;
  };

  return (request, reply, done) => {
    const rule = request.routeOptions.config.access;
    const { url } = request.routeOptions;
    if (rule?.by === 'nobody' && rule.isLimited === true) {
      const flood = unmetered.ofAddress(request.ip);
      if (flood === undefined) return done();
      refuse(reply, ...flood);
      return undefined;
    }
    if (rule?.by === 'nobody' || url === undefined || isReference(url)) return done();
    // No route without a rule can be added; should one be, it is closed.
    if (rule === undefined) return done(new Error(`${url} names no access rule.`));
    request.refusableAtMs = performance.now() + REFUSAL_AFTER_MS;
    const byKey =
      rule.accepts.includes('key') &&
      (headerOf(request) !== undefined || !rule.accepts.includes('session') || !hasCookie(request));
    if (byKey) return onKey(rule, request, reply, done);
    onSession(rule, request, reply).then((mayGoOn) => {
      if (mayGoOn) done();
    }, done);
    return undefined;
  };
}

type Done = (error?: Error) => void;

/** Checks tier, scope and limits of a key's call; goes on or answers. */
function admit(
  { meter }: GuardOptions,
  rule: AccountRule,
  waiver: Waiver | undefined,
  key: KeyAccess,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  const { account } = key;
  const denial = denialOf(rule, account, key) ?? (waiver === 'free' ? undefined : waiver);
  if (denial !== undefined || !rule.isMetered || waiver !== undefined) {
    tellLimits(meter, reply, account);
    if (denial !== undefined) refuse(reply, ...denial);
    else done();
    return;
  }
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const call = { account, keyId: key.id, endpoint: `${method} ${request.routeOptions.url}` };
  const taken = meter.take(call);
  if (!(taken instanceof Promise)) answer(taken);
  else taken.then(answer, done);

  function answer(result: Taken): void {
    if (result.kind === 'granted') {
      setLimits(reply, result);
      request.meteredCall = call;
      done();
      return;
    }
    const daily = 'daily' in result ? result.daily : meter.peek(account).daily;
    setLimits(reply, { burst: result.burst, daily });
    if (result.kind === 'unavailable') refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
    else refuse(reply, ...limitProblem(result));
  }
}

/** Tells the limits where nothing is taken. Without a subscription in force there are none. */
function tellLimits(meter: Meter, reply: FastifyReply, account: AccountAccess): void {
  if (tierOf(account, Date.now()) !== undefined) setLimits(reply, meter.peek(account));
}

function setLimits(reply: FastifyReply, limits: Parameters<typeof rateHeaders>[0]): void {
  const { 'ratelimit-policy': policy, ratelimit } = rateHeaders(limits);
  reply.header('ratelimit-policy', policy).header('ratelimit', ratelimit);
}

function limitProblem(
  result: Extract<Taken, { kind: 'rate_limited' | 'quota_exceeded' }>,
): [ProblemCode, ProblemMembers] {
  if (result.kind === 'rate_limited') {
    return [
      'rate_limited',
      {
        'violated-policies': ['burst'],
        scope: 'account',
        limit: result.burst.limit,
        window_s: result.burst.windowS,
        retry_after_s: result.retryAfterS,
      },
    ];
  }
  return [
    'daily_quota_exceeded',
    {
      'violated-policies': ['daily'],
      scope: 'account',
      limit: result.daily.limit,
      used: result.used,
      resets_at: result.resetsAt,
      detail: 'The day begins at 00:00 UTC. The quota is shared by all keys of the account.',
      retry_after_s: result.daily.resetS,
    },
  ];
}

/** Two headers of the name arrive joined by a comma, which no key has. */
function headerOf(request: FastifyRequest): string | undefined {
  const header = request.headers['x-api-key'];
  return typeof header === 'object' ? header.join() : header;
}

function hasCookie(request: FastifyRequest): boolean {
  return request.headers.cookie !== undefined;
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Refused credentials are answered at one distance from the request, whatever it took to find out:
 * otherwise the time would tell an unknown key from a revoked one, or from a malformed one.
 */
function createRefusals() {
  let held = 0;
  return {
    send(request: FastifyRequest, reply: FastifyReply, code: ProblemCode): void {
      const leftMs = request.refusableAtMs - performance.now();
      // In a flood of them the process comes first; it is then too busy to be timed.
      if (leftMs <= 0 || held >= REFUSALS_HELD_MAX) {
        refuse(reply, code);
        return;
      }
      held += 1;
      setTimeout(() => {
        held -= 1;
        refuse(reply, code);
      }, leftMs);
    },
  };
}
