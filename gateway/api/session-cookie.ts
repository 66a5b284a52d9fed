import { timingSafeEqual } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Session, Sessions } from '../../lib/accounts/sessions.ts';

const NAME = 'pillole_session';

/** Finds the session of a request's cookie. */
export type SessionFinder = (
  request: FastifyRequest,
) => Promise<Session | undefined | 'unavailable'>;

/** The session token that a request carries. */
export function sessionTokenOf(request: FastifyRequest): string | undefined {
  const header = request.headers.cookie;
  return header === undefined ? undefined : parseCookie(header)[NAME];
}

/**
 * Sets the cookie: out of reach of scripts, not sent by other sites' requests (SameSite=Lax), over
 * TLS alone where the service has it.
 */
export function setSessionCookie(
  reply: FastifyReply,
  token: string,
  options: { readonly maxAgeS: number; readonly isSecure: boolean },
): void {
  reply.header(
    'set-cookie',
    stringifySetCookie({
      name: NAME,
      value: token,
      httpOnly: true,
      sameSite: 'lax',
      path: '/',
      maxAge: options.maxAgeS,
      secure: options.isSecure,
    }),
  );
}

/** Takes the cookie back. */
export function clearSessionCookie(reply: FastifyReply, isSecure: boolean): void {
  setSessionCookie(reply, '', { maxAgeS: 0, isSecure });
}

/** Whether the request repeats the session's token in `X-CSRF-Token`, as another site cannot. */
export function hasCsrfToken(request: FastifyRequest, { csrfToken }: Session): boolean {
  const sent = request.headers['x-csrf-token'];
  if (typeof sent !== 'string') return false;
  const [a, b] = [Buffer.from(sent), Buffer.from(csrfToken)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Makes the finder over the sessions' table; the database away is an answer of its own. */
export function createSessionFinder(sessions: Pick<Sessions, 'find'>): SessionFinder {
  return async (request) => {
    const token = sessionTokenOf(request);
    if (token === undefined) return undefined;
    try {
      return await sessions.find(token);
    } catch {
      return 'unavailable';
    }
  };
}
