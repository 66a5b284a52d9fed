import type { AccountAccess } from '../../../domain/access/account-access.ts';
import { tierOf } from '../../../domain/access/entitlement.ts';
import { hasScope } from '../../../domain/access/scopes.ts';
import type { ListedEndpoint } from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import {
  type EndpointState,
  endpointState,
} from '../../../domain/webhooks/endpoints/endpoint-state.ts';
import { redactedUrl } from '../../../domain/webhooks/endpoints/origin.ts';
import { bodyOf } from '../../http/answer-body.ts';
import type { Caller } from '../server/caller.ts';
import { WebhookEndpointBody } from './schemas.ts';

/** The state of an endpoint now, by the tier of its account. */
export function stateOf(endpoint: ListedEndpoint, account: AccountAccess): EndpointState {
  return endpointState(endpoint.rank, endpoint.status, tierOf(account, Date.now()));
}

/** URLs may hold credentials: only a caller who may change the endpoint sees the whole URL. */
export function endpointBody(endpoint: ListedEndpoint, { account, key }: Caller) {
  const { filter, ...others } = endpoint;
  const state = stateOf(endpoint, account);
  const isWhole = key === undefined || hasScope(key.scopes, 'webhooks:write');
  const url = isWhole ? endpoint.url : redactedUrl(endpoint.url);
  const urlRedacted = url !== endpoint.url;
  return bodyOf(WebhookEndpointBody, { ...others, ...filter, state, url, urlRedacted });
}
