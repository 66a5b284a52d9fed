import type { RouteOptions } from 'fastify';
import type { TObject } from 'typebox';
import { PasswordsBusyError } from '../../../lib/accounts/passwords.ts';
import { isDatabaseAway } from '../../../lib/postgres/database.ts';
import { refuse } from '../../http/refuse.ts';
import { type Endpoint, endpoint } from '../endpoint.ts';

/** An endpoint over the tables of accounts: the database away is an answer, not a fault. */
export function accountEndpoint<P extends TObject, Q extends TObject, B extends TObject>(
  of: Endpoint<P, Q, B>,
): RouteOptions {
  return endpoint({
    ...of,
    problems: ['accounts_unavailable', ...(of.problems ?? [])],
    async handle(request, reply) {
      try {
        return await of.handle(request, reply);
      } catch (error) {
        if (error instanceof PasswordsBusyError) {
          return refuse(reply, 'overloaded', { retry_after_s: 1 });
        }
        if (!isDatabaseAway(error)) throw error;
        return refuse(reply, 'accounts_unavailable', { retry_after_s: 1 });
      }
    },
  });
}
