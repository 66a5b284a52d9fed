import type { FastifyReply, FastifyRequest } from 'fastify';
import type {
  Endpoints,
  ListedEndpoint,
} from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import type { EndpointState } from '../../../domain/webhooks/endpoints/endpoint-state.ts';
import { refuse } from '../../http/refuse.ts';
import { type AccountRule, ownAccount, signedIn, withFreshFactor } from '../server/access-rule.ts';
import { callerOf } from '../server/caller.ts';
import { stateOf } from './endpoint-body.ts';

/** Endpoints: need no capability, because after a downgrade they can still be read and deleted. */
export const READS = route(ownAccount('webhooks:read', 'webhooks:read'));
export const DELETES = route(ownAccount('webhooks:write', 'webhooks:change'));

/** Deliveries and their attempts. */
export const READS_DELIVERIES = route(ownAccount('webhooks:read', 'webhooks:read', 'webhooks'));

/** Posts messages: by key too. */
export const WRITES = route(ownAccount('webhooks:write', 'webhooks:change', 'webhooks'));

/** Changes where messages go: by key too, for infrastructure as code. */
export const CHANGES = route(withFreshFactor(WRITES.access));

/**
 * A new secret of an existing endpoint: by session only, because a leaked key must not replace what
 * the receiver trusts. A key gets the secret of an endpoint that it creates.
 */
export const ROTATES = route(withFreshFactor(signedIn('webhooks:change', 'webhooks')));

function route(access: AccountRule) {
  return { tag: 'webhooks', access };
}

/**
 * Finds the endpoint of a request. Unless it exists and is in one of the states `fit`, answers 404
 * or 409.
 * @param fit undefined = any state
 */
export async function findEndpoint(
  endpoints: Endpoints,
  request: FastifyRequest & { readonly params: { readonly id: string } },
  reply: FastifyReply,
  fit?: readonly EndpointState[],
): Promise<ListedEndpoint | undefined> {
  const { account } = callerOf(request);
  const endpoint = await endpoints.get(account.id, request.params.id);
  if (endpoint === undefined) {
    refuse(reply, 'object_not_found');
    return undefined;
  }
  const state = stateOf(endpoint, account);
  if (fit === undefined || fit.includes(state)) return endpoint;
  refuse(reply, 'state_conflict', { detail: STATE_REASONS[state], state });
  return undefined;
}

const STATE_REASONS: Readonly<Record<EndpointState, string>> = {
  pending:
    'The endpoint is pending: it must first answer an endpoint.test message with its challenge; ' +
    'see POST /api/webhooks/{id}/test.',
  enabled: 'The endpoint is enabled.',
  disabled: 'The endpoint is disabled: enable it first at PATCH /api/webhooks/{id}.',
  over_limit:
    'The account has more endpoints than its tier allows, and older endpoints take precedence: ' +
    'delete one of those, or change to a tier that allows more.',
  not_entitled: 'The tier of the account does not include webhooks.',
};
