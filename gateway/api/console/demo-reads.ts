import type { RouteOptions } from 'fastify';
import type { Keyring } from '../../../domain/access/keyring.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED } from '../server/access-rule.ts';

/** The reads of a symbol's view. */
const READS = ['/api/market/verify', '/api/analytics/bars'];

/**
 * The reads that the page needs, without a key, as the demo account, below `/console/demo`. They
 * exist only where the operator named that account; calls from one network are limited, and the
 * account's limits of concurrent queries hold.
 */
export function demoReads(
  routes: readonly RouteOptions[],
  keyring: Pick<Keyring, 'account'>,
  accountId: string,
): RouteOptions[] {
  return routes
    .filter(({ url }) => READS.includes(url))
    .map((route) => ({
      ...route,
      url: route.url.replace('/api', '/console/demo'),
      config: { ...route.config, access: OPEN_LIMITED },
      schema: { ...route.schema, hide: true },
      async onRequest(request, reply) {
        const account = await keyring.account(accountId);
        if (account === undefined) return refuse(reply, 'object_not_found');
        if (account === 'unavailable') {
          return refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
        }
        request.caller = { account, key: undefined, session: undefined };
        return undefined;
      },
    }));
}
