import type { FastifyReply, FastifyRequest } from 'fastify';
import { countSecurityEvent, noteAccountEvent } from '../../../domain/access/security-events.ts';
import { PROBLEMS, type ProblemCode } from '../../http/problem-catalogue.ts';
import { actorOf } from './caller.ts';

/** Refusals that say nothing about an attack: the plan of the account. */
const OF_THE_PLAN: readonly ProblemCode[] = [
  'subscription_required',
  'tier_too_low',
  'account_suspended',
];
/** Refusals with another status than 401 and 403. */
const FURTHER: readonly ProblemCode[] = ['token_invalid', 'too_many_attempts'];

/** Actions that are counted, by route; `audit` for those that have no audit entry of their own. */
const ACTIONS: Readonly<Record<string, { readonly event: string; readonly audit?: string }>> = {
  'POST /api/session': { event: 'signed_in' },
  'DELETE /api/session': { event: 'signed_out' },
  'POST /api/users/verify/resend': { event: 'verification_resent' },
  'POST /api/password/reset': { event: 'password_reset_requested' },
  'POST /api/password/reset/confirm': { event: 'password_reset' },
  'POST /api/password': { event: 'password_changed' },
  'POST /api/webhooks/:id/test': { event: 'webhook_tested', audit: 'webhook.tested' },
  'POST /api/webhooks/:id/deliveries/:message_id/resend': {
    event: 'webhook_resent',
    audit: 'webhook.resent',
  },
  'POST /api/webhooks/:id/recover': { event: 'webhook_recovered' },
  'POST /api/webhooks/:id/replay': { event: 'webhook_replayed' },
  'DELETE /api/stream/sessions/:id': { event: 'socket_ended', audit: 'socket.ended' },
};

/** Whether a refusal with this code is counted: of the credential, the origin, the scope, the token. */
export function isSecurityProblem(code: ProblemCode): boolean {
  const { status } = PROBLEMS[code];
  return (
    ((status === 401 || status === 403) && !OF_THE_PLAN.includes(code)) || FURTHER.includes(code)
  );
}

/** Counts refusals and actions that an operator watches, and notes them for the account's audit log. */
export function countSecurity(
  request: FastifyRequest,
  reply: FastifyReply,
  done: () => void,
): void {
  const { problemCode: code, caller, ip: address } = request;
  if (code !== undefined) {
    if (isSecurityProblem(code)) {
      countSecurityEvent(code, address);
      if (caller !== undefined) {
        const { id: accountId } = caller.account;
        const actor = actorOf(caller);
        noteAccountEvent({ accountId, action: 'access.refused', actor, event: code, address });
      }
    }
  } else if (reply.statusCode < 300) {
    const { method, url = '' } = request.routeOptions;
    const action = ACTIONS[`${method} ${url}`];
    if (action !== undefined) {
      countSecurityEvent(action.event, address);
      if (action.audit !== undefined && caller !== undefined) {
        const { id: target } = request.params as { readonly id?: string };
        noteAccountEvent({
          accountId: caller.account.id,
          actor: actorOf(caller),
          action: action.audit,
          ...(target === undefined ? {} : { target }),
          address,
        });
      }
    }
  }
  done();
}
