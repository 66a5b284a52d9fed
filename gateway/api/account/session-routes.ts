import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { SESSION_MAX_S, type Session } from '../../../lib/accounts/sessions.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED, SIGNED_IN } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { clearSessionCookie, sessionTokenOf, setSessionCookie } from '../session-cookie.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { Email, Password, STRICT, Time } from './schemas.ts';

const SessionBody = Type.Object({
  user: Type.Object({
    id: Type.String(),
    email: Type.String(),
    email_verified: Type.Boolean(),
  }),
  account: Type.String(),
  csrf_token: Type.String({ description: 'For X-CSRF-Token, with every request that changes' }),
  expires_at: Time,
});
const answers = {
  200: {
    description: 'The session; its cookie is HttpOnly.',
    schema: SessionBody,
    example: {
      user: { id: 'usr_k3yq7v2bqm9c', email: 'trader@example.com', email_verified: true },
      account: 'acc_x2nt7swd5erz',
      csrf_token: 'k3Yq0v1bQm9cX2nT7sWd5eRzP4uLhJ8gFaKoCiVbNmE',
      expires_at: '2026-12-04T01:02:03.000Z',
    },
  },
};

/** Sign in, look, sign out. */
export function addSessionRoutes(
  app: FastifyInstance,
  { users, sessions, isSecure }: Pick<Accounts, 'users' | 'sessions' | 'isSecure'>,
): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/session',
      tag: 'session',
      summary: 'Sign in',
      access: OPEN_LIMITED,
      body: Type.Object({ email: Email, password: Password }, STRICT),
      bodyExample: { email: 'trader@example.com', password: 'correct horse battery' },
      answers,
      problems: ['sign_in_refused', 'account_closed', 'too_many_attempts'],
      ifUnknown: 'Sign in again: a session that nobody has the cookie of ends after a day.',
      async handle({ body, ip }, reply) {
        const result = await users.signIn(body.email, body.password, ip);
        if (result.kind === 'refused') return refuse(reply, 'sign_in_refused');
        if (result.kind === 'limited') {
          return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
        }
        if (result.kind === 'closed') {
          return refuse(reply, 'account_closed', { erased_at: result.erasedAt.toISOString() });
        }
        setSessionCookie(reply, result.token, { maxAgeS: SESSION_MAX_S, isSecure });
        reply.header('cache-control', 'no-store');
        return sessionBody(result.session);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/session',
      tag: 'session',
      summary: 'Who is signed in, and the CSRF token',
      access: SIGNED_IN,
      answers,
      handle(request, reply) {
        reply.header('cache-control', 'no-store');
        return sessionBody(callerOf(request).session!);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'DELETE',
      url: '/api/session',
      tag: 'session',
      summary: 'Sign out',
      access: SIGNED_IN,
      ifUnknown: 'GET /api/session answers 401 when you are signed out.',
      answers: { 204: { description: 'Signed out; the cookie is taken back.' } },
      async handle(request, reply) {
        if (callerOf(request).session !== undefined) await sessions.end(sessionTokenOf(request)!);
        clearSessionCookie(reply, isSecure);
        return reply.code(204).send();
      },
    }),
  );
}

function sessionBody({ userId, email, isVerified, accountId, csrfToken, expiresAt }: Session) {
  return {
    user: { id: userId, email, email_verified: isVerified },
    account: accountId,
    csrf_token: csrfToken,
    expires_at: expiresAt.toISOString(),
  };
}
