import type { FastifyReply, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { ROLES } from '../../../domain/access/roles.ts';
import type { Invitation, Invitations } from '../../../domain/members/invitations.ts';
import { MEMBER_LIMITS, type MemberRefusal } from '../../../domain/members/member-rows.ts';
import {
  changeRole,
  listMembers,
  type MemberChanged,
  removeMember,
} from '../../../domain/members/members.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, memberRequestOf } from '../server/caller.ts';
import { idOf, MaybeTime, STRICT, Time } from '../server/schemas.ts';

export const RoleName = Type.Enum([...ROLES]);
const Member = Type.Object({
  id: Type.String({ examples: ['usr_k3yq7v2bqm9c'] }),
  email: Type.String({ examples: ['trader@example.com'] }),
  role: RoleName,
  second_factor: Type.Boolean({ description: 'Whether one is in force', examples: [true] }),
  created_at: Time,
  last_sign_in_at: MaybeTime,
});
const InvitationBody = Type.Object({
  id: Type.String({ examples: ['inv_k3yq7v2bqm9c'] }),
  email: Type.String({ examples: ['dev@example.com'] }),
  role: RoleName,
  mails: Type.Integer({ description: 'Mails sent so far', examples: [1] }),
  created_at: Time,
  created_by: Type.String({ examples: ['user:usr_k3yq7v2bqm9c'] }),
  expires_at: Time,
});
const Members = Type.Object({
  data: Type.Array(Member),
  invitations: Type.Array(InvitationBody, { description: 'Open, or expired within a week' }),
  limit: Type.Integer({ examples: [MEMBER_LIMITS.perAccountMax] }),
});
const params = Type.Object({ id: idOf('usr') }, STRICT);

/** `invitation` of the answers of these and of the routes of invitations. */
export const invitationAnswer = (description: string) => answerOf(description, InvitationBody);
export const invitationBody = (invitation: Invitation) => bodyOf(InvitationBody, invitation);

interface MemberDeps {
  readonly db: Database;
  readonly invitations: Invitations;
}

/**
 * Members of an Institutional account. Reading and removing need no capability: after a downgrade
 * the owners still see and remove members, who have no access then.
 */
export function memberRoutes({ db, invitations }: MemberDeps): RouteOptions[] {
  const of = { tag: 'manager', params, problems: ['object_not_found', 'state_conflict'] } as const;
  return [
    accountRoute({
      method: 'GET',
      url: '/api/manager/members',
      tag: 'manager',
      access: signedIn('members:read'),
      summary: 'List the members of the account with their roles, and the invitations',
      answers: { 200: answerOf('Oldest members first, newest invitations first.', Members) },
      async handle(request) {
        const { id } = callerOf(request).account;
        const [members, invited] = [await listMembers(db, id), await invitations.list(id)];
        return {
          data: members.map((member) => bodyOf(Member, member)),
          invitations: invited.map(invitationBody),
          limit: MEMBER_LIMITS.perAccountMax,
        };
      },
    }),
    accountRoute({
      ...of,
      method: 'PATCH',
      url: '/api/manager/members/:id',
      access: withFreshFactor(signedIn('members:change', 'api_manager')),
      summary: 'Change the role of a member, whose sessions end',
      description: 'Only owners make, change or remove owners. The last owner stays one.',
      body: Type.Object({ role: RoleName }, STRICT),
      bodyExample: { role: 'read_only' },
      answers: { 204: { description: 'Changed; in effect at once.' } },
      async handle(request, reply) {
        const { id: memberId } = request.params;
        const { role } = request.body;
        const change = { ...memberRequestOf(request), memberId, role };
        return answerChange(reply, await changeRole(db, change), callerOf(request).session!.role);
      },
    }),
    accountRoute({
      ...of,
      method: 'DELETE',
      url: '/api/manager/members/:id',
      access: withFreshFactor(signedIn('members:change')),
      summary: 'Remove a member, whose sessions and sockets end',
      description:
        'In every process of the API at once; sockets of a browser close within a second. Keys that ' +
        'the member made belong to the account and stay: revoke them at DELETE /api/keys/{id}. The ' +
        'person keeps the sign-in, with an empty account.',
      answers: { 204: { description: 'Removed.' } },
      async handle(request, reply) {
        const removal = { ...memberRequestOf(request), memberId: request.params.id };
        const removed = await removeMember(db, removal);
        return answerChange(reply, removed, callerOf(request).session!.role);
      },
    }),
  ];
}

type Role = (typeof ROLES)[number];

function answerChange(reply: FastifyReply, changed: MemberChanged, role: Role): FastifyReply {
  if (changed === undefined) return refuse(reply, 'object_not_found');
  return changed.kind === 'ok' ? reply.code(204).send() : refuseChange(reply, changed, role);
}

/** Refuses a change of members that the guard has let pass. @param role of the caller */
export function refuseChange(
  reply: FastifyReply,
  refused: MemberRefusal,
  role: Role,
): FastifyReply {
  if (refused.kind === 'last_owner') {
    const detail = 'The account would have no owner: make another member an owner first.';
    return refuse(reply, 'state_conflict', { detail });
  }
  const { roles } = refused;
  return refuse(reply, 'permission_missing', { role, permission: 'members:change', roles });
}
