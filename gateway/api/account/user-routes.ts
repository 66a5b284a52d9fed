import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { emailOfResetToken } from '../../../lib/accounts/mail-tokens.ts';
import { passwordFault } from '../../../lib/accounts/passwords.ts';
import type { Taken } from '../../../lib/accounts/users.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED, SIGNED_IN } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { accountEndpoint } from './account-endpoint.ts';
import type { Accounts } from './accounts.ts';
import { ACCEPTED, Accepted, Email, lineOf, MailToken, Password, STRICT } from './schemas.ts';

const accepted = {
  202: {
    description: 'Taken. The same for every address: what follows is told by mail.',
    schema: Accepted,
    example: ACCEPTED,
  },
};
const Done = Type.Object({ status: Type.Literal('ok') });
const done = { 200: { description: 'Done.', schema: Done, example: { status: 'ok' } } };
const EMAIL = 'trader@example.com';
const TOKEN = 'k3Yq0v1bQm9cX2nT7sWd5eRzP4uLhJ8gFaKoCiVbNmE';

/** Sign-up, verification and passwords. */
export function addUserRoutes(
  app: FastifyInstance,
  { users, db }: Pick<Accounts, 'users' | 'db'>,
): void {
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/users',
      tag: 'session',
      summary: 'Sign up: an account with its first user',
      access: OPEN_LIMITED,
      body: Type.Object(
        {
          email: Email,
          password: Password,
          account_name: Type.Optional(lineOf(100)),
        },
        STRICT,
      ),
      bodyExample: { email: EMAIL, password: 'correct horse battery', account_name: 'Desk 4' },
      answers: accepted,
      problems: ['too_many_attempts'],
      ifUnknown: 'Sign up again: a mail tells whether there was an account already.',
      async handle({ body, ip }, reply) {
        const fault = passwordFault(body.password, body.email.toLowerCase());
        if (fault !== undefined) return refusePassword(reply, fault);
        const { email, password, account_name: accountName } = body;
        const result = await users.signUp({ email, password, accountName, address: ip });
        return answerAccepted(reply, result);
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/users/verify',
      tag: 'session',
      summary: 'Verify the address by the token of the mail',
      access: OPEN_LIMITED,
      body: Type.Object({ token: MailToken }, STRICT),
      bodyExample: { token: TOKEN },
      answers: done,
      problems: ['token_invalid'],
      ifUnknown: 'GET /api/session tells whether the address is verified.',
      handle: async ({ body }, reply) =>
        (await users.verifyEmail(body.token)) ? { status: 'ok' } : refuse(reply, 'token_invalid'),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/users/verify/resend',
      tag: 'session',
      summary: 'Send the verification mail again',
      access: OPEN_LIMITED,
      body: Type.Object({ email: Email }, STRICT),
      bodyExample: { email: EMAIL },
      answers: accepted,
      problems: ['too_many_attempts'],
      handle: async ({ body, ip }, reply) =>
        answerAccepted(reply, await users.resendVerification(body.email, ip)),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/password/reset',
      tag: 'session',
      summary: 'Ask for a new password',
      access: OPEN_LIMITED,
      body: Type.Object({ email: Email }, STRICT),
      bodyExample: { email: EMAIL },
      answers: accepted,
      problems: ['too_many_attempts'],
      handle: async ({ body, ip }, reply) =>
        answerAccepted(reply, await users.requestReset(body.email, ip)),
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/password/reset/confirm',
      tag: 'session',
      summary: 'Set a new password by the token of the mail; all sessions end',
      access: OPEN_LIMITED,
      body: Type.Object({ token: MailToken, password: Password }, STRICT),
      bodyExample: { token: TOKEN, password: 'another horse battery' },
      answers: done,
      problems: ['token_invalid'],
      ifUnknown: 'Sign in with the new password; if it is refused, ask for another mail.',
      async handle({ body, ip }, reply) {
        const email = await emailOfResetToken(db, body.token);
        // Before the hash: a token that is no good costs no work.
        if (email === undefined) return refuse(reply, 'token_invalid');
        const fault = passwordFault(body.password, email);
        if (fault !== undefined) return refusePassword(reply, fault);
        const isDone = await users.resetPassword(body.token, body.password, ip);
        return isDone ? { status: 'ok' } : refuse(reply, 'token_invalid');
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/password',
      tag: 'session',
      summary: 'Change the password; all sessions end',
      access: SIGNED_IN,
      body: Type.Object({ current: Password, password: Password }, STRICT),
      bodyExample: { current: 'correct horse battery', password: 'another horse battery' },
      answers: done,
      problems: ['sign_in_refused', 'too_many_attempts'],
      ifUnknown: 'Sign in: the new password works when it was changed, else the old one does.',
      async handle(request, reply) {
        const { userId, email } = callerOf(request).session!;
        const { current, password } = request.body;
        const fault = passwordFault(password, email);
        if (fault !== undefined) return refusePassword(reply, fault);
        const changed = await users.changePassword(userId, current, password, request.ip);
        if (changed.kind === 'refused') return refuse(reply, 'sign_in_refused');
        if (changed.kind === 'limited') {
          return refuse(reply, 'too_many_attempts', { retry_after_s: changed.retryAfterS });
        }
        return { status: 'ok' };
      },
    }),
  );
}

function answerAccepted(reply: FastifyReply, result: Taken) {
  if (result.kind === 'ok') return reply.code(202).send(ACCEPTED);
  return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
}

function refusePassword(reply: FastifyReply, detail: string) {
  const errors = [{ pointer: '#/password', code: 'password_weak', detail }];
  return refuse(reply, 'body_invalid', { errors });
}
