import type { FastifyRequest } from 'fastify';
import type { AccountAccess, KeyAccess } from '../../../domain/access/account-access.ts';
import { isSchemeId } from '../../../domain/access/scheme-rows.ts';
import type { Session } from '../../../domain/accounts/sessions.ts';
import { shortUserAgent, type Visitor } from '../../../domain/accounts/visitor.ts';

/** The sender of a request that the guard has admitted. */
export interface Caller {
  readonly account: AccountAccess;
  /** Exactly one of the two; a signature or token counts as a key. */
  readonly key: KeyAccess | undefined;
  readonly session: Session | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | undefined;
  }
}

/** The caller of a route with an account rule. @throws on any other route, which is a bug */
export function callerOf(request: { readonly caller: Caller | undefined }): Caller {
  if (request.caller === undefined) throw new Error('The route has no account rule.');
  return request.caller;
}

/** The name of the caller in the audit log. */
export function actorOf({ session, key }: Caller): string {
  if (session !== undefined) return `user:${session.userId}`;
  const id = key?.id ?? '';
  return `${isSchemeId(id) ? 'scheme' : 'key'}:${id}`;
}

/** The account, actor and address of a request, as changes of accounts record them. */
export function requesterOf(request: FastifyRequest) {
  const caller = callerOf(request);
  return { accountId: caller.account.id, actor: actorOf(caller), address: request.ip };
}

/** The same of a signed-in user, who changes members in person. */
export function memberRequestOf(request: FastifyRequest) {
  return { ...requesterOf(request), userId: callerOf(request).session!.userId };
}

/** The origin of a request that may begin a session. */
export function visitorOf({ ip, headers }: FastifyRequest): Visitor {
  return { address: ip, userAgent: shortUserAgent(headers['user-agent']) };
}
