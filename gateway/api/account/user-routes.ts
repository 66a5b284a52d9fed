import type { FastifyReply, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { userOfToken } from '../../../domain/accounts/mail-tokens.ts';
import { EASY_TO_GUESS, passwordFault } from '../../../domain/accounts/passwords.ts';
import type { AcceptedOrLimited } from '../../../domain/accounts/user-checks.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED, signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import {
  ACCEPTED,
  Accepted,
  Email,
  lineOf,
  MailToken,
  Password,
  STRICT,
} from '../server/schemas.ts';
import { hasCsrfToken } from '../server/session-cookie.ts';
import type { Accounts } from './account-deps.ts';
import { refuseSignIn } from './session-routes.ts';

const ACCEPTED_TEXT =
  'Accepted. The answer is the same for every address; the outcome comes by mail.';
const accepted = { 202: answerOf(ACCEPTED_TEXT, Accepted) };
const done = { 200: answerOf('Done.', Type.Object({ status: Type.Literal('ok') })) };
const EMAIL = 'trader@example.com';
const TOKEN = 'k3Yq0v1bQm9cX2nT7sWd5eRzP4uLhJ8gFaKoCiVbNmE';

type UserDeps = Pick<Accounts, 'users' | 'db' | 'findSession'>;

/** Sign-up, verification and passwords. */
export function userRoutes(deps: UserDeps): RouteOptions[] {
  const { users } = deps;
  return [
    accountRoute({
      method: 'POST',
      url: '/api/users',
      tag: 'session',
      summary: 'Sign up: create an account and its first user',
      access: OPEN_LIMITED,
      body: Type.Object(
        { email: Email, password: Password, account_name: Type.Optional(lineOf(100)) },
        STRICT,
      ),
      bodyExample: { email: EMAIL, password: 'correct horse battery', account_name: 'Desk 4' },
      answers: accepted,
      problems: ['too_many_attempts'],
      ifUnknown: 'Sign up again: if the account exists already, a mail says so.',
      async handle({ body, ip }, reply) {
        const fault = passwordFault(body.password, body.email.toLowerCase());
        if (fault !== undefined) return refusePassword(reply, fault);
        const { email, password, account_name: accountName } = body;
        const result = await users.signUp({ email, password, accountName, address: ip });
        if (result.kind === 'weak') return refusePassword(reply, EASY_TO_GUESS);
        return answerAccepted(reply, result);
      },
    }),
    verifyEmail(deps),
    mailRequest(
      '/api/users/verify/resend',
      'Send the verification mail again',
      users.resendVerification,
    ),
    mailRequest('/api/password/reset', 'Request a password reset', users.requestReset),
    resetPassword(deps),
    changePassword(deps),
  ];
}

function verifyEmail({ users, findSession }: UserDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/users/verify',
    tag: 'session',
    summary: 'Verify the e-mail address with the token from the mail',
    description:
      'The password of the sign-up, or a session with its X-CSRF-Token, must come with the token: ' +
      'otherwise a stranger who signed up with your address would get an account that you verified.',
    access: OPEN_LIMITED,
    body: Type.Object({ token: MailToken, password: Type.Optional(Password) }, STRICT),
    bodyExample: { token: TOKEN, password: 'correct horse battery' },
    answers: done,
    problems: ['token_invalid', 'verification_unproven', 'too_many_attempts'],
    ifUnknown: 'GET /api/session shows whether the address is verified.',
    async handle(request, reply) {
      const { token, password } = request.body;
      const session = await findSession(request);
      if (session === 'unavailable') {
        return refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
      }
      const isOwn = session !== undefined && hasCsrfToken(request, session);
      const sessionUserId = isOwn ? session.userId : undefined;
      const verified = await users.verifyEmail(token, {
        sessionUserId,
        password,
        address: request.ip,
      });
      switch (verified.kind) {
        case 'ok':
          return { status: 'ok' };
        case 'invalid':
          return refuse(reply, 'token_invalid');
        case 'unproven':
          return refuse(reply, 'verification_unproven');
        case 'limited':
          return refuse(reply, 'too_many_attempts', { retry_after_s: verified.retryAfterS });
      }
    },
  });
}

/** A route that sends a mail to an address, and answers the same for every address. */
function mailRequest(
  url: string,
  summary: string,
  send: (email: string, address: string) => Promise<AcceptedOrLimited>,
): RouteOptions {
  return accountRoute({
    method: 'POST',
    url,
    tag: 'session',
    summary,
    access: OPEN_LIMITED,
    body: Type.Object({ email: Email }, STRICT),
    bodyExample: { email: EMAIL },
    answers: accepted,
    problems: ['too_many_attempts'],
    handle: async ({ body, ip }, reply) => answerAccepted(reply, await send(body.email, ip)),
  });
}

function resetPassword({ users, db }: UserDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/password/reset/confirm',
    tag: 'session',
    summary: 'Set a new password with the token from the mail; all sessions end',
    access: OPEN_LIMITED,
    body: Type.Object({ token: MailToken, password: Password }, STRICT),
    bodyExample: { token: TOKEN, password: 'another horse battery' },
    answers: done,
    problems: ['token_invalid'],
    ifUnknown: 'Sign in with the new password; if sign-in is refused, request another mail.',
    async handle({ body, ip }, reply) {
      const { token, password } = body;
      const { email } = (await userOfToken(db, token, 'reset_password')) ?? {};
      // Checked before hashing, so that an invalid token costs no computation.
      if (email === undefined) return refuse(reply, 'token_invalid');
      const fault = passwordFault(password, email);
      if (fault !== undefined) return refusePassword(reply, fault);
      const { kind } = await users.resetPassword(token, email, password, ip);
      if (kind === 'weak') return refusePassword(reply, EASY_TO_GUESS);
      return kind === 'ok' ? { status: 'ok' } : refuse(reply, 'token_invalid');
    },
  });
}

function changePassword({ users }: UserDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/password',
    tag: 'session',
    summary: 'Change the password; all sessions end',
    access: withFreshFactor(signedIn('profile')),
    body: Type.Object({ current: Password, password: Password }, STRICT),
    bodyExample: { current: 'correct horse battery', password: 'another horse battery' },
    answers: done,
    problems: ['sign_in_refused', 'too_many_attempts'],
    ifUnknown:
      'Sign in: if the change was made, the new password works; otherwise the old one does.',
    async handle(request, reply) {
      const { userId, email } = callerOf(request).session!;
      const { current, password } = request.body;
      const fault = passwordFault(password, email);
      if (fault !== undefined) return refusePassword(reply, fault);
      const changed = await users.changePassword(userId, current, password, request.ip);
      if (changed.kind === 'weak') return refusePassword(reply, EASY_TO_GUESS);
      return changed.kind === 'ok' ? { status: 'ok' } : refuseSignIn(reply, changed);
    },
  });
}

function answerAccepted(reply: FastifyReply, result: AcceptedOrLimited) {
  if (result.kind === 'ok') return reply.code(202).send(ACCEPTED);
  return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
}

function refusePassword(reply: FastifyReply, detail: string) {
  return refuseBody(reply, [bodyFault('/password', 'password_weak', detail)]);
}
