import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { Limited } from '../../../domain/accounts/attempts.ts';
import type { Acceptance, JoinedOrRefused } from '../../../domain/members/acceptance.ts';
import type { Invitations } from '../../../domain/members/invitations.ts';
import { MEMBER_LIMITS, type MemberRefusal } from '../../../domain/members/member-rows.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED, signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, memberRequestOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import { Email, idOf, MailToken, Password, STRICT } from '../server/schemas.ts';
import { invitationAnswer, invitationBody, RoleName, refuseChange } from './member-routes.ts';

const Membership = Type.Object({
  account: Type.String({ examples: ['acc_x2nt7swd5erz'] }),
  email: Type.String({ examples: ['dev@example.com'] }),
  role: RoleName,
});
const params = Type.Object({ id: idOf('inv') }, STRICT);
const TOKEN = 'k3Yq0v1bQm9cX2nT7sWd5eRzP4uLhJ8gFaKoCiVbNmE';
const CHANGES = {
  tag: 'manager',
  access: withFreshFactor(signedIn('members:change', 'api_manager')),
} as const;

interface Deps {
  readonly invitations: Invitations;
  readonly acceptance: Acceptance;
}

/** Invitations by mail, and their acceptance. */
export function invitationRoutes(deps: Deps): RouteOptions[] {
  return [invite(deps), resend(deps), revoke(deps), accept(deps), join(deps)];
}

function invite({ invitations }: Deps): RouteOptions {
  return accountRoute({
    ...CHANGES,
    method: 'POST',
    url: '/api/manager/invitations',
    summary: 'Invite someone by mail to become a member',
    description:
      `The token in the mail works once, for ${MEMBER_LIMITS.invitationS / 86_400} days, and only ` +
      'for its address. Only owners invite owners.',
    body: Type.Object({ email: Email, role: RoleName }, STRICT),
    bodyExample: { email: 'dev@example.com', role: 'developer' },
    answers: { 201: invitationAnswer('The invitation; its mail is on its way.') },
    problems: ['member_limit', 'state_conflict', 'too_many_attempts'],
    ifUnknown: 'If GET /api/manager/members lists the invitation, it was made; send it again.',
    async handle(request, reply) {
      const result = await invitations.invite({ ...memberRequestOf(request), ...request.body });
      if (result.kind === 'ok') return reply.code(201).send(invitationBody(result.invitation));
      if (result.kind === 'limit') {
        return refuse(reply, 'member_limit', { limit: MEMBER_LIMITS.perAccountMax });
      }
      if (result.kind === 'known') {
        const detail = 'This address is that of a member, or has an open invitation.';
        return refuse(reply, 'state_conflict', { detail });
      }
      return refuseMail(request, reply, result);
    },
  });
}

function resend({ invitations }: Deps): RouteOptions {
  return accountRoute({
    ...CHANGES,
    method: 'POST',
    url: '/api/manager/invitations/:id/resend',
    summary: 'Send an invitation again, with a new token; the former one is void',
    description: `At most ${MEMBER_LIMITS.mailsOfInvitationMax} mails of one invitation.`,
    params,
    answers: { 204: { description: 'The mail is on its way; the token is valid for a week.' } },
    problems: ['object_not_found', 'state_conflict', 'too_many_attempts'],
    ifUnknown: 'Send it again.',
    async handle(request, reply) {
      const { id: invitationId } = request.params;
      const result = await invitations.resend({ ...memberRequestOf(request), invitationId });
      if (result === undefined) return refuse(reply, 'object_not_found');
      if (result.kind === 'ok') return reply.code(204).send();
      if (result.kind === 'mails_limit') {
        const detail = 'This invitation was sent often enough: revoke it and make another.';
        return refuse(reply, 'state_conflict', { detail });
      }
      return refuseMail(request, reply, result);
    },
  });
}

type NoMail = MemberRefusal | Limited;

function refuseMail(request: FastifyRequest, reply: FastifyReply, refused: NoMail): FastifyReply {
  if (refused.kind === 'limited') {
    return refuse(reply, 'too_many_attempts', { retry_after_s: refused.retryAfterS });
  }
  return refuseChange(reply, refused, callerOf(request).session!.role);
}

function revoke({ invitations }: Deps): RouteOptions {
  return accountRoute({
    method: 'DELETE',
    url: '/api/manager/invitations/:id',
    tag: 'manager',
    access: signedIn('members:change'),
    summary: 'Revoke an invitation: its token is void at once',
    params,
    answers: { 204: { description: 'Revoked.' } },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const { id: invitationId } = request.params;
      const result = await invitations.revoke({ ...memberRequestOf(request), invitationId });
      if (result === undefined) return refuse(reply, 'object_not_found');
      if (result.kind === 'ok') return reply.code(204).send();
      return refuseChange(reply, result, callerOf(request).session!.role);
    },
  });
}

function accept({ acceptance }: Deps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/invitations/accept',
    tag: 'session',
    access: OPEN_LIMITED,
    summary: 'Accept an invitation as a new user, with a password of your own',
    body: Type.Object({ token: MailToken, password: Password }, STRICT),
    bodyExample: { token: TOKEN, password: 'correct horse battery' },
    answers: { 201: answerOf('You are a member: sign in at POST /api/session.', Membership) },
    problems: ['token_invalid', 'membership_inactive', 'state_conflict', 'too_many_attempts'],
    ifUnknown: 'Sign in: if it is refused, accept the invitation again.',
    async handle({ body, ip }, reply) {
      const result = await acceptance.accept(body.token, body.password, ip);
      if (result.kind === 'weak') {
        const { reason } = result;
        return refuseBody(reply, [
          bodyFault('/password', 'password_weak', `\`password\` ${reason}`),
        ]);
      }
      if (result.kind === 'limited') {
        return refuse(reply, 'too_many_attempts', { retry_after_s: result.retryAfterS });
      }
      if (result.kind === 'known') {
        const detail =
          'You have an account with this address: sign in, and send the token to ' +
          'POST /api/invitations/join. The invitation is still open.';
        return refuse(reply, 'state_conflict', { detail });
      }
      return answerJoined(reply, result, 201);
    },
  });
}

function join({ acceptance }: Deps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/invitations/join',
    tag: 'session',
    access: withFreshFactor(signedIn('profile')),
    summary: 'Accept an invitation as the signed-in user, who leaves the present account',
    description:
      'A person belongs to one account. An account that nobody is left in closes, so it must have no ' +
      'subscription, no open checkout and no live keys; the last owner of others cannot leave. All ' +
      'sessions of the user end: sign in again.',
    body: Type.Object({ token: MailToken }, STRICT),
    bodyExample: { token: TOKEN },
    answers: { 200: answerOf('You are a member: sign in at POST /api/session.', Membership) },
    problems: ['token_invalid', 'membership_inactive', 'state_conflict'],
    ifUnknown: 'If GET /api/session answers 401, sign in: `account` says where you are.',
    handle: async (request, reply) => {
      const { session } = callerOf(request);
      const result = await acceptance.join(request.body.token, session!, request.ip);
      if (result.kind === 'bound')
        return refuse(reply, 'state_conflict', { detail: result.reason });
      return answerJoined(reply, result, 200);
    },
  });
}

type Settled = Exclude<JoinedOrRefused, { kind: 'bound' }>;

function answerJoined(reply: FastifyReply, result: Settled, status: 200 | 201): FastifyReply {
  if (result.kind === 'invalid') return refuse(reply, 'token_invalid');
  if (result.kind === 'inactive') return refuse(reply, 'membership_inactive');
  const { accountId: account, ...joined } = result;
  return reply.code(status).send(bodyOf(Membership, { account, ...joined }));
}
