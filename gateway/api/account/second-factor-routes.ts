import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { RECOVERY_CODES } from '../../../domain/accounts/recovery-codes.ts';
import { answerOf, timeText } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { ruled } from '../server/form.ts';
import { MaybeTime, Password, STRICT } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';
import { refuseCode, refuseSignIn } from './session-routes.ts';

const ROUTE = { tag: 'session', access: signedIn('profile') } as const;
const PasswordBody = Type.Object({ password: Password }, STRICT);
const bodyExample = { password: 'correct horse battery' };
const IS_ON = 'A second factor is in force: remove it first at DELETE /api/second-factor.';
const IS_OFF = 'No second factor is in force: set it up at POST /api/second-factor.';
const READ_STATE = 'GET /api/second-factor shows whether a second factor is in force.';
const State = Type.Object({
  enabled: Type.Boolean({ examples: [true] }),
  confirmed_at: MaybeTime,
  recovery_codes_left: Type.Integer({ minimum: 0, examples: [RECOVERY_CODES] }),
});
const RecoveryCodes = Type.Object({
  recovery_codes: Type.Array(Type.String(), {
    description: 'Each one works once in place of a code; shown only this once',
    examples: [['k3yq7-v2bqm-2cx2n-t7swd']],
  }),
});
const recoveryCodes = answerOf('The recovery codes; they are never shown again.', RecoveryCodes);

type SecondFactorDeps = Pick<Accounts, 'users' | 'secondFactors'>;

/** The second factor (TOTP, RFC 6238) of the signed-in user. */
export function secondFactorRoutes(deps: SecondFactorDeps): RouteOptions[] {
  const { secondFactors } = deps;
  return [
    accountRoute({
      ...ROUTE,
      method: 'GET',
      url: '/api/second-factor',
      summary: 'Read whether the user has a second factor',
      answers: { 200: answerOf('Its state.', State) },
      async handle(request) {
        const { userId } = callerOf(request).session!;
        const { confirmedAt, recoveryCodesLeft } = await secondFactors.read(userId);
        return {
          enabled: confirmedAt !== undefined,
          confirmed_at:
            confirmedAt === null || confirmedAt === undefined ? null : timeText(confirmedAt),
          recovery_codes_left: recoveryCodesLeft,
        };
      },
    }),
    beginSetup(deps),
    confirmSetup(deps),
    accountRoute({
      method: 'POST',
      url: '/api/second-factor/recovery-codes',
      tag: 'session',
      summary: 'Replace the recovery codes; earlier ones are void',
      access: withFreshFactor(signedIn('profile')),
      answers: { 201: recoveryCodes },
      problems: ['state_conflict'],
      ifUnknown: 'Replace them again.',
      async handle(request, reply) {
        const session = callerOf(request).session!;
        if (!session.secondFactor.isOn) return refuse(reply, 'state_conflict', { detail: IS_OFF });
        const codes = await secondFactors.renewRecoveryCodes(session, request.ip);
        return reply.code(201).send({ recovery_codes: codes });
      },
    }),
    removeFactor(deps),
  ];
}

function beginSetup({ users, secondFactors }: SecondFactorDeps): RouteOptions {
  return accountRoute({
    ...ROUTE,
    method: 'POST',
    url: '/api/second-factor',
    summary: 'Begin to set up a second factor: it is in force once a code confirms it',
    body: PasswordBody,
    bodyExample,
    answers: {
      201: answerOf(
        'For the authenticator app; confirm it within 10 minutes.',
        Type.Object({
          secret: Type.String({
            description: 'Base32, shown only this once',
            examples: ['<32 characters>'],
          }),
          uri: Type.String({
            description: 'The same as a link, for a QR code',
            examples: ['otpauth://totp/pillole:trader%40example.com?issuer=pillole&secret=…'],
          }),
        }),
      ),
    },
    problems: ['email_unverified', 'sign_in_refused', 'too_many_attempts', 'state_conflict'],
    ifUnknown: 'Begin again: only the newest set-up can be confirmed.',
    async handle(request, reply) {
      const session = callerOf(request).session!;
      // Else a stranger who signed up with this address could lock its owner out.
      if (!session.isVerified) return refuse(reply, 'email_unverified');
      const { password } = request.body;
      const checked = await users.checkPassword(session.userId, password, request.ip);
      if (checked.kind !== 'ok') return refuseSignIn(reply, checked);
      const setup = await secondFactors.begin(session);
      if (setup === undefined) return refuse(reply, 'state_conflict', { detail: IS_ON });
      return reply.code(201).send(setup);
    },
  });
}

function confirmSetup({ secondFactors }: SecondFactorDeps): RouteOptions {
  return accountRoute({
    ...ROUTE,
    method: 'POST',
    url: '/api/second-factor/confirm',
    summary: 'Confirm the set-up with a first code; all other sign-ins end',
    body: Type.Object(
      {
        code: Type.String({
          pattern: ruled('^\\d{6}$', 'malformed', 'Send the six digits of the authenticator.'),
        }),
      },
      STRICT,
    ),
    bodyExample: { code: '492039' },
    answers: { 201: recoveryCodes },
    problems: ['second_factor_refused', 'too_many_attempts', 'state_conflict'],
    ifUnknown: `${READ_STATE} If it is, replace the recovery codes to see them.`,
    async handle(request, reply) {
      const session = callerOf(request).session!;
      const confirmed = await secondFactors.confirm(session, request.body.code, request.ip);
      if (confirmed.kind === 'none') {
        const detail = 'No set-up of the last 10 minutes waits for a code: begin one.';
        return refuse(reply, 'state_conflict', { detail });
      }
      if (confirmed.kind !== 'ok') return refuseCode(reply, confirmed);
      return reply.code(201).send({ recovery_codes: confirmed.recoveryCodes });
    },
  });
}

function removeFactor({ users, secondFactors }: SecondFactorDeps): RouteOptions {
  return accountRoute({
    method: 'DELETE',
    url: '/api/second-factor',
    tag: 'session',
    summary: 'Remove the second factor and its recovery codes',
    access: withFreshFactor(signedIn('profile')),
    body: PasswordBody,
    bodyExample,
    answers: { 204: { description: 'Removed.' } },
    problems: ['sign_in_refused', 'too_many_attempts', 'state_conflict'],
    ifUnknown: READ_STATE,
    async handle(request, reply) {
      const session = callerOf(request).session!;
      const { password } = request.body;
      const checked = await users.checkPassword(session.userId, password, request.ip);
      if (checked.kind !== 'ok') return refuseSignIn(reply, checked);
      const isRemoved = await secondFactors.remove(session, request.ip);
      if (!isRemoved) return refuse(reply, 'state_conflict', { detail: IS_OFF });
      return reply.code(204).send();
    },
  });
}
