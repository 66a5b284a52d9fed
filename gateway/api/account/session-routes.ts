import type { FastifyReply, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { ROLES } from '../../../domain/access/roles.ts';
import { RECOVERY_CODE_PATTERN } from '../../../domain/accounts/recovery-codes.ts';
import type { CodeChecked } from '../../../domain/accounts/second-factor.ts';
import {
  SESSION_MAX_S,
  SESSIONS_PER_USER_MAX,
  type Session,
} from '../../../domain/accounts/sessions.ts';
import type { PasswordChecked } from '../../../domain/accounts/user-checks.ts';
import { answerOf, bodyOf, timeText } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED, signedIn } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, visitorOf } from '../server/caller.ts';
import { ruled } from '../server/form.ts';
import { Email, idOf, Password, STRICT, Time } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';

/** Of the authenticator, or a recovery code. */
export const Code = Type.String({
  pattern: ruled(
    `^(?:\\d{6}|${RECOVERY_CODE_PATTERN})$`,
    'malformed',
    'Send the six digits of the authenticator, or a recovery code.',
  ),
  description: 'Six digits of the authenticator, or a recovery code',
});
const SessionBody = Type.Object({
  user: Type.Object({
    id: Type.String({ examples: ['usr_k3yq7v2bqm9c'] }),
    email: Type.String({ examples: ['trader@example.com'] }),
    email_verified: Type.Boolean({ examples: [true] }),
  }),
  role: Type.Enum([...ROLES], { description: 'What the user is in the account' }),
  account: Type.String({ examples: ['acc_x2nt7swd5erz'] }),
  csrf_token: Type.String({
    description: 'For the X-CSRF-Token header of every request that changes something',
    examples: ['k3Yq0v1bQm9cX2nT7sWd5eRzP4uLhJ8gFaKoCiVbNmE'],
  }),
  expires_at: Time,
  second_factor: Type.Object({
    enabled: Type.Boolean({ examples: [true] }),
    fresh: Type.Boolean({
      description: 'Proved within the last 10 minutes, as keys, secrets and payment need it',
      examples: [true],
    }),
  }),
});
const SignIn = Type.Object({
  id: Type.String({ examples: ['ses_0c1f9a7be2d4'] }),
  address: Type.String({ examples: ['203.0.113.7'] }),
  user_agent: Type.String({ description: 'Its start', examples: ['curl/8.5.0'] }),
  created_at: Time,
  last_seen_at: Time,
  expires_at: Time,
  current: Type.Boolean({ description: 'The session of this request', examples: [true] }),
});
const answers = { 200: answerOf('The session. Its cookie is HttpOnly.', SessionBody) };

type SessionDeps = Pick<Accounts, 'users' | 'sessions' | 'secondFactors' | 'cookie' | 'support'>;

/** Sign in, read the session, sign out; the sign-ins of the user. */
export function sessionRoutes(deps: SessionDeps): RouteOptions[] {
  return [signIn(deps), ...ownSession(deps), proveFactor(deps), ...signIns(deps)];
}

function signIn({ users, cookie, support }: SessionDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/session',
    tag: 'session',
    summary: 'Sign in',
    access: OPEN_LIMITED,
    body: Type.Object({ email: Email, password: Password, code: Type.Optional(Code) }, STRICT),
    bodyExample: { email: 'trader@example.com', password: 'correct horse battery' },
    answers,
    problems: [
      'sign_in_refused',
      'second_factor_required',
      'second_factor_refused',
      'account_closed',
      'too_many_attempts',
    ],
    ifUnknown: 'Sign in again: an unused session ends after a day.',
    async handle(request, reply) {
      const { email, password, code } = request.body;
      const result = await users.signIn(email, password, { ...visitorOf(request), code });
      switch (result.kind) {
        case 'ok':
          cookie.set(reply, result.token, SESSION_MAX_S);
          return sessionBody(result.session);
        case 'closed':
          return refuse(reply, 'account_closed', {
            detail: `To have the account reopened, write to ${support} before \`erased_at\`.`,
            erased_at: timeText(result.erasedAt),
            support,
          });
        case 'code_required':
          return refuse(reply, 'second_factor_required');
        case 'code_refused':
          return refuse(reply, 'second_factor_refused');
        default:
          return refuseSignIn(reply, result);
      }
    },
  });
}

function ownSession({ sessions, cookie }: SessionDeps): RouteOptions[] {
  return [
    accountRoute({
      method: 'GET',
      url: '/api/session',
      tag: 'session',
      summary: 'Read who is signed in, and the CSRF token',
      access: signedIn('profile'),
      answers,
      handle: (request) => sessionBody(callerOf(request).session!),
    }),
    accountRoute({
      method: 'DELETE',
      url: '/api/session',
      tag: 'session',
      summary: 'Sign out',
      access: signedIn('profile'),
      ifUnknown: 'If you are signed out, GET /api/session answers 401.',
      answers: { 204: { description: 'Signed out; the cookie is cleared.' } },
      async handle(request, reply) {
        await sessions.end(cookie.tokenOf(request)!);
        cookie.clear(reply);
        return reply.code(204).send();
      },
    }),
  ];
}

function proveFactor({ secondFactors }: SessionDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/session/second-factor',
    tag: 'session',
    summary: 'Prove the second factor for the next 10 minutes of this session',
    access: signedIn('profile'),
    body: Type.Object({ code: Code }, STRICT),
    bodyExample: { code: '492039' },
    answers,
    problems: ['second_factor_refused', 'too_many_attempts'],
    ifUnknown: 'GET /api/session shows whether the second factor is fresh.',
    async handle(request, reply) {
      const session = callerOf(request).session!;
      const proved = await secondFactors.prove(session, request.body.code, request.ip);
      if (proved.kind !== 'ok') return refuseCode(reply, proved);
      return sessionBody({ ...session, secondFactor: { isOn: true, isFresh: true } });
    },
  });
}

function signIns({ sessions }: SessionDeps): RouteOptions[] {
  const ROUTE = { tag: 'session', access: signedIn('profile') } as const;
  return [
    accountRoute({
      ...ROUTE,
      method: 'GET',
      url: '/api/sessions',
      summary: 'List the sign-ins of the user that have not ended, newest first',
      answers: {
        200: answerOf(
          `At most ${SESSIONS_PER_USER_MAX}.`,
          Type.Object({ data: Type.Array(SignIn) }),
        ),
      },
      handle: async (request) => ({
        data: (await sessions.list(callerOf(request).session!)).map((one) => bodyOf(SignIn, one)),
      }),
    }),
    accountRoute({
      ...ROUTE,
      method: 'DELETE',
      url: '/api/sessions',
      summary: 'End all other sign-ins of the user',
      answers: {
        200: answerOf('How many ended.', Type.Object({ ended: Type.Integer({ examples: [2] }) })),
      },
      ifUnknown: 'GET /api/sessions lists those that have not ended.',
      handle: async (request) => ({
        ended: await sessions.endOthers(callerOf(request).session!, request.ip),
      }),
    }),
    accountRoute({
      ...ROUTE,
      method: 'DELETE',
      url: '/api/sessions/:id',
      summary: 'End a sign-in of the user; its sockets are closed',
      params: Type.Object({ id: idOf('ses') }, STRICT),
      answers: { 204: { description: 'Ended.' } },
      problems: ['object_not_found'],
      ifUnknown: 'GET /api/sessions lists those that have not ended.',
      async handle(request, reply) {
        const { session } = callerOf(request);
        const isEnded = await sessions.endOne(session!, request.params.id, request.ip);
        return isEnded ? reply.code(204).send() : refuse(reply, 'object_not_found');
      },
    }),
  ];
}

/** Refuses a code that is wrong or was tried too often. */
export function refuseCode(
  reply: FastifyReply,
  refused: Exclude<CodeChecked, { kind: 'ok' }>,
): FastifyReply {
  if (refused.kind === 'refused') return refuse(reply, 'second_factor_refused');
  return refuse(reply, 'too_many_attempts', { retry_after_s: refused.retryAfterS });
}

/** Refuses a password that is wrong or was tried too often. */
export function refuseSignIn(
  reply: FastifyReply,
  refused: Exclude<PasswordChecked, { kind: 'ok' }>,
): FastifyReply {
  if (refused.kind === 'refused') return refuse(reply, 'sign_in_refused');
  return refuse(reply, 'too_many_attempts', { retry_after_s: refused.retryAfterS });
}

function sessionBody(session: Session) {
  const { userId, email, role, isVerified, accountId, csrfToken, expiresAt, secondFactor } =
    session;
  return {
    user: { id: userId, email, email_verified: isVerified },
    role,
    account: accountId,
    csrf_token: csrfToken,
    expires_at: timeText(expiresAt),
    second_factor: { enabled: secondFactor.isOn, fresh: secondFactor.isFresh },
  };
}
