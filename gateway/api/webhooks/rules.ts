import type { FastifyReply } from 'fastify';
import type { AccountAccess } from '../../../lib/access/access.ts';
import type { ListedEndpoint } from '../../../lib/webhooks/endpoints.ts';
import type { EndpointStanding } from '../../../lib/webhooks/standing.ts';
import { refuse } from '../../http/refuse.ts';
import type { AccountRule } from '../access-rule.ts';
import { stateOf } from './endpoint-body.ts';

/** A leaked key must not have what the account is told sent elsewhere, nor end it. */
export const CHANGES: AccountRule = {
  by: 'account',
  accepts: ['session'],
  capability: 'webhooks',
  isMetered: false,
};

/** Stays after a downgrade: what there is can be looked at, and removed (by session). */
export const LOOKS: AccountRule = {
  by: 'account',
  accepts: ['key', 'session'],
  scope: 'read',
  isMetered: false,
};

/** About messages: a program of the customer may see to its own deliveries. */
export const DELIVERS: AccountRule = { ...LOOKS, capability: 'webhooks' };

/** Answers 409 unless the endpoint is in a state that it may be posted to in. */
export function refuseState(
  reply: FastifyReply,
  endpoint: ListedEndpoint,
  account: AccountAccess,
  fit: readonly EndpointStanding[] = ['enabled'],
): FastifyReply | undefined {
  const state = stateOf(endpoint, account);
  if (fit.includes(state)) return undefined;
  return refuse(reply, 'state_conflict', { detail: WHY[state], state });
}

const WHY: Readonly<Record<EndpointStanding, string>> = {
  pending:
    'The endpoint is pending: its answer to endpoint.test must hold the challenge first; see ' +
    'POST /api/webhooks/{id}/test.',
  enabled: 'The endpoint is enabled.',
  disabled: 'The endpoint is disabled: enable it first, at PATCH /api/webhooks/{id}.',
  over_limit:
    'The tier has fewer places than the account has endpoints, and older ones have them: delete ' +
    'one of those, or change to a tier with more.',
  not_entitled: 'The account has no tier with webhooks now.',
};
