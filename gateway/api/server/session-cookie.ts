import { timingSafeEqual } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Session, Sessions } from '../../../domain/accounts/sessions.ts';

/** Finds the session of a request's cookie; `unavailable` while the database is away. */
export type SessionFinder = (
  request: FastifyRequest,
) => Promise<Session | undefined | 'unavailable'>;

/** Whether a service is reached over TLS. */
export function isSecure(publicUrl: string): boolean {
  return new URL(publicUrl).protocol === 'https:';
}

/**
 * The cookie's name. Browsers accept `__Host-` only over TLS, for all paths and for this host alone,
 * so neither a page of a sibling domain nor a clear-text answer can set it. Without TLS, which the
 * settings allow on this machine only, browsers would refuse the prefix.
 */
export function sessionCookieName(publicUrl: string): string {
  return isSecure(publicUrl) ? '__Host-pillole_session' : 'pillole_session';
}

export type SessionCookie = ReturnType<typeof createSessionCookie>;

/** The cookie of sessions: a cookie of any other name is not read. */
export function createSessionCookie(publicUrl: string) {
  const name = sessionCookieName(publicUrl);
  /** Hidden from scripts, and not sent with requests of other sites (SameSite=Lax). */
  const set = (reply: FastifyReply, value: string, maxAge: number) => {
    const flags = {
      httpOnly: true,
      sameSite: 'lax',
      path: '/',
      secure: isSecure(publicUrl),
    } as const;
    reply.header('set-cookie', stringifySetCookie({ name, value, maxAge, ...flags }));
  };
  return {
    /** The session token that a request carries. */
    tokenOf(request: FastifyRequest): string | undefined {
      const header = request.headers.cookie;
      return header === undefined ? undefined : parseCookie(header)[name];
    },
    set,
    clear: (reply: FastifyReply) => set(reply, '', 0),
  };
}

/** Whether `X-CSRF-Token` repeats the session's token, which another site cannot know. */
export function hasCsrfToken(request: FastifyRequest, { csrfToken }: Session): boolean {
  const sent = request.headers['x-csrf-token'];
  if (typeof sent !== 'string') return false;
  const [a, b] = [Buffer.from(sent), Buffer.from(csrfToken)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Creates the finder. Requests of one session at once take one database connection. */
export function createSessionFinder(
  sessions: Pick<Sessions, 'find'>,
  cookie: SessionCookie,
): SessionFinder {
  const find = shareLookups((token) => sessions.find(token));
  return async (request) => {
    const token = cookie.tokenOf(request);
    if (token === undefined) return undefined;
    try {
      return await find(token);
    } catch {
      return 'unavailable';
    }
  };
}

/**
 * Lets callers that arrive during a look-up share the next one, so no result is older than its
 * request. If the running one fails, they fail with it: the next one would hang as long.
 */
export function shareLookups<T>(lookUp: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  const following = new Map<string, Promise<T>>();
  const start = (key: string): Promise<T> => {
    const mine = lookUp(key).finally(() => {
      if (running.get(key) === mine) running.delete(key);
    });
    running.set(key, mine);
    return mine;
  };
  return (key) => {
    const before = running.get(key);
    if (before === undefined) return start(key);
    const shared = following.get(key);
    if (shared !== undefined) return shared;
    const next = before.finally(() => following.delete(key)).then(() => start(key));
    following.set(key, next);
    return next;
  };
}
