import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Identified } from '../../../domain/access/account-access.ts';
import type { KeyUse } from '../../../domain/access/key-use.ts';
import type { Keyring } from '../../../domain/access/keyring.ts';
import type { Session } from '../../../domain/accounts/sessions.ts';
import type { Authenticator } from '../../../domain/authentication/authenticator.ts';
import type { ClientProof } from '../../http/client-proof.ts';
import type { Refusal } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { REFUSAL_AFTER_MS } from '../limits.ts';
import { type AccountRule, needsCsrfToken } from './access-rule.ts';
import { refusalOf } from './authorize.ts';
import type { Caller } from './caller.ts';
import { symbolsRefusal } from './desk-symbols.ts';
import { type Generators, identifyGenerator } from './generators.ts';
import { keyProblem } from './key-fault.ts';
import { isReference } from './openapi.ts';
import { admitProof, proofOf } from './proof-admission.ts';
import { createRefuser } from './refuser.ts';
import { hasCsrfToken, type SessionFinder } from './session-cookie.ts';
import { type Done, showLimits, takeCall } from './take-call.ts';
import { createUnmeteredLimits } from './unmetered-limits.ts';

export interface GuardOptions {
  readonly keyring: Keyring;
  readonly meter: Parameters<typeof takeCall>[0];
  readonly keyUse: KeyUse;
  readonly findSession: SessionFinder;
  readonly generators: Generators;
  readonly authenticator: Authenticator;
  /** Public address of the API, which signatures cover. */
  readonly publicUrl: string;
}

interface GuardDeps extends GuardOptions {
  readonly refuser: ReturnType<typeof createRefuser>;
  readonly unmetered: ReturnType<typeof createUnmeteredLimits>;
}

/** A request to a route with an account rule. */
interface Visit {
  readonly rule: AccountRule;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly done: Done;
}

/** In place of the key of a call that a session made. */
const CONSOLE_KEY = 'console';

const UNAVAILABLE: Refusal = ['accounts_unavailable', { retry_after_s: 1 }];

/**
 * Creates the hook in front of every route. For a route with an account rule it checks, in this
 * order, who the caller is, whether the caller may use the route, and whether calls are left. A
 * known key on a tier without a daily limit costs no turn of the event loop.
 */
export function createGuard(options: GuardOptions): onRequestHookHandler {
  const unmetered = createUnmeteredLimits();
  const deps: GuardDeps = { ...options, refuser: createRefuser(), unmetered };
  return (request, reply, done) => {
    const rule = request.routeOptions.config.access;
    const { url } = request.routeOptions;
    if (rule?.by === 'anyone' && rule.isLimited === true) {
      const flood = unmetered.ofAddress(request.ip);
      if (flood === undefined) return done();
      refuse(reply, ...flood);
      return undefined;
    }
    if (rule?.by === 'anyone' || url === undefined || isReference(url)) return done();
    // A route without a rule cannot be added; if one existed, it would stay closed.
    if (rule === undefined) return done(new Error(`${url} names no access rule.`));
    if (rule.by === 'generator') {
      const refusal = admitGenerator(deps, request);
      if (refusal === undefined) return done();
      refuse(reply, ...refusal);
      return undefined;
    }
    request.refusableAtMs = performance.now() + REFUSAL_AFTER_MS;
    const visit = { rule, request, reply, done };
    const proof = rule.accepts.includes('key') ? proofOf(request, deps.publicUrl) : undefined;
    if (proof !== undefined) return admitByProof(deps, visit, proof);
    const byKey =
      rule.accepts.includes('key') &&
      (keyHeaderOf(request) !== undefined ||
        !rule.accepts.includes('session') ||
        request.headers.cookie === undefined);
    if (byKey) return admitByKey(deps, visit);
    callerBySession(deps, visit).then((caller) => {
      if ('refusal' in caller) deps.refuser(request, reply, caller.refusal);
      else admitCaller(deps, visit, caller);
    }, done);
    return undefined;
  };
}

/** @returns why the request is not admitted; undefined if it is */
function admitGenerator(
  { generators, unmetered }: GuardDeps,
  request: FastifyRequest,
): Refusal | undefined {
  const flood = unmetered.ofAddress(request.ip);
  if (flood !== undefined) return flood;
  const generator = identifyGenerator(generators, request);
  if ('refusal' in generator) return generator.refusal;
  request.generator = generator;
  return undefined;
}

function admitByKey(deps: GuardDeps, visit: Visit): undefined {
  const { request, reply, done } = visit;
  const decide = (who: Identified) => {
    if (who.kind === 'refused') deps.refuser(request, reply, [keyProblem(who.fault, request), {}]);
    else if (who.kind === 'address_refused') refuse(reply, 'address_refused');
    else if (who.kind === 'keys_refused') refuse(reply, 'keys_refused');
    else if (who.kind === 'unavailable') refuse(reply, ...UNAVAILABLE);
    else {
      deps.keyUse.note(who.key.id, request.ip);
      const { account } = who.key;
      admitCaller(deps, visit, { account, key: who.key, session: undefined });
    }
  };
  const identified = deps.keyring.identify(keyHeaderOf(request), request.ip);
  if (identified instanceof Promise) identified.then(decide, done);
  else decide(identified);
}

function admitByProof(deps: GuardDeps, visit: Visit, proof: ClientProof): undefined {
  const { request, reply, done } = visit;
  admitProof(deps.authenticator, proof, request).then((key) => {
    if ('refusal' in key) return deps.refuser(request, reply, key.refusal);
    deps.keyUse.note(key.id, request.ip);
    return admitCaller(deps, visit, { account: key.account, key, session: undefined });
  }, done);
  return undefined;
}

/** @returns who is signed in, or why the request is not admitted */
async function callerBySession(
  { keyring, meter, unmetered, findSession }: GuardDeps,
  { rule, request, reply }: Visit,
): Promise<Caller | { readonly refusal: Refusal }> {
  const flood = unmetered.ofAddress(request.ip);
  if (flood !== undefined) return { refusal: flood };
  const session = await findSession(request);
  if (session === 'unavailable') return { refusal: UNAVAILABLE };
  if (session === undefined) {
    return { refusal: [rule.accepts.includes('key') ? 'key_missing' : 'session_required', {}] };
  }
  const account = await keyring.account(session.accountId);
  if (account === 'unavailable' || account === undefined) return { refusal: UNAVAILABLE };
  const caller = { account, key: undefined, session };
  // Also for a refusal, which the account sees in its audit.
  request.caller = caller;
  if (needsCsrfToken(rule, request.method) && !hasCsrfToken(request, session)) {
    showLimits(meter, reply, account);
    return { refusal: ['csrf_token_invalid', {}] };
  }
  return caller;
}

/** Checks flood, tier, scope, second factor and limits of a caller; calls `done`, or answers. */
function admitCaller({ meter, unmetered }: GuardDeps, visit: Visit, caller: Caller): void {
  const { rule, request, reply, done } = visit;
  const { account, key, session } = caller;
  request.caller = caller;
  const waiver = rule.waive?.(request, account);
  const isMetered = rule.isMetered && waiver === undefined;
  const refusal =
    (isMetered ? undefined : unmetered.ofAccount(account, key?.desk)) ??
    refusalOf(rule, caller) ??
    symbolsRefusal(rule, request, key?.desk) ??
    (waiver === 'free' ? undefined : waiver) ??
    (session === undefined ? undefined : factorRefusal(rule, session));
  if (refusal === undefined && isMetered) {
    takeCall(meter, { id: key?.id ?? CONSOLE_KEY, account, desk: key?.desk }, request, reply, done);
    return;
  }
  showLimits(meter, reply, account, key?.desk);
  if (refusal === undefined) done();
  else refuse(reply, ...refusal);
}

function factorRefusal(rule: AccountRule, { secondFactor }: Session): Refusal | undefined {
  const isMissing = rule.needsFreshFactor === true && secondFactor.isOn && !secondFactor.isFresh;
  return isMissing ? ['second_factor_stale', {}] : undefined;
}

/** Two headers of the name arrive joined by a comma, which no key contains. */
function keyHeaderOf(request: FastifyRequest): string | undefined {
  const header = request.headers['x-api-key'];
  return typeof header === 'object' ? header.join() : header;
}
