import type { RouteOptions } from 'fastify';
import type { TObject } from 'typebox';
import { PasswordsBusyError } from '../../../lib/accounts/passwords.ts';
import { isDatabaseAway, OutcomeUnknownError } from '../../../lib/postgres/database.ts';
import { refuse } from '../../http/refuse.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';

/** Where nothing more is known of how to look. */
const READ_IT_AGAIN = 'Read with GET what you wanted to change.';

/**
 * An endpoint over the tables of accounts: the database away is an answer, not a fault.
 * @param ifUnknown how a client finds out whether a change was kept whose answer was lost
 */
export function accountEndpoint<P extends TObject, Q extends TObject, B extends TObject>({
  ifUnknown = READ_IT_AGAIN,
  ...of
}: Endpoint<P, Q, B> & { readonly ifUnknown?: string }): RouteOptions {
  return endpoint<P, Q, B>({
    ...of,
    problems: [
      'accounts_unavailable',
      ...(of.method === 'GET' ? [] : (['account_outcome_unknown'] as const)),
      ...(of.problems ?? []),
    ],
    async handle(request, reply) {
      try {
        return await of.handle(request, reply);
      } catch (error) {
        if (error instanceof PasswordsBusyError) {
          return refuse(reply, 'overloaded', { retry_after_s: 1 });
        }
        if (error instanceof OutcomeUnknownError && of.method !== 'GET') {
          return refuse(reply, 'account_outcome_unknown', { detail: ifUnknown });
        }
        if (!isDatabaseAway(error)) throw error;
        return refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
      }
    },
  });
}
