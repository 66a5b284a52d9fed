import type { FastifyRequest } from 'fastify';
import type { AccountAccess, KeyAccess } from '../../lib/access/access.ts';
import type { Session } from '../../lib/accounts/sessions.ts';

/** Whom a request comes from, once the guard has let it in. */
export interface Caller {
  readonly account: AccountAccess;
  /** Exactly one of the two. */
  readonly key: KeyAccess | undefined;
  readonly session: Session | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | undefined;
  }
}

/** The caller of a route whose rule wants one. @throws when the rule does not: a bug of ours. */
export function callerOf(request: { readonly caller: Caller | undefined }): Caller {
  if (request.caller === undefined) throw new Error('The route has no account rule.');
  return request.caller;
}

/** As the audit log names who acts. */
export function actorOf({ session, key }: Caller): string {
  return session === undefined ? `key:${key?.id}` : `user:${session.userId}`;
}

/** Who asks, and for which account, as changes of an account want to know it. */
export function requesterOf(request: FastifyRequest) {
  const caller = callerOf(request);
  return { accountId: caller.account.id, actor: actorOf(caller), address: request.ip };
}
