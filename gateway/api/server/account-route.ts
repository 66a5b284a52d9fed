import type { RouteOptions } from 'fastify';
import type { TObject } from 'typebox';
import { PasswordsBusyError } from '../../../domain/accounts/passwords.ts';
import { isDatabaseAway, OutcomeUnknownError } from '../../../lib/postgres/database.ts';
import { TurnRefusedError } from '../../../lib/postgres/in-turn.ts';
import { refuse } from '../../http/refuse.ts';
import { defineRoute, type RouteDefinition } from './define-route.ts';

/** The default of `ifUnknown`. */
const READ_IT_AGAIN = 'Read the object with GET, and compare it with your change.';

/**
 * An endpoint that uses the accounts database: an unavailable database is an answer, not an error.
 * No answer is stored by caches.
 * @param ifUnknown describes to clients how to find out whether a change was stored when its answer
 *   is lost
 */
export function accountRoute<P extends TObject, Q extends TObject, B extends TObject>({
  ifUnknown = READ_IT_AGAIN,
  ...of
}: RouteDefinition<P, Q, B> & { readonly ifUnknown?: string }): RouteOptions {
  return defineRoute<P, Q, B>({
    ...of,
    problems: [
      'accounts_unavailable',
      ...(of.method === 'GET' ? [] : (['account_outcome_unknown'] as const)),
      ...(of.problems ?? []),
    ],
    async handle(request, reply) {
      reply.header('cache-control', 'no-store');
      try {
        return await of.handle(request, reply);
      } catch (error) {
        if (error instanceof PasswordsBusyError) {
          return refuse(reply, 'overloaded', { retry_after_s: 1 });
        }
        if (error instanceof TurnRefusedError) {
          return refuse(reply, 'overloaded', { detail: error.message, retry_after_s: 1 });
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
