import { sql } from 'kysely';
import { runEvery } from '../../lib/timing/run-every.ts';
import type { Role } from '../access/roles.ts';
import { eventMail } from './mails.ts';
import { mailPendingRows, type OutgoingMail, type PendingMailDeps } from './pending-mails.ts';

const INTERVAL_MS = 1_000;

export type EventMailDeps = PendingMailDeps & { readonly publicUrl: string };

/** Besides those that concern a user alone, events are for those who can act on them. */
const READERS: readonly Role[] = ['owner', 'admin'];
/** Events of these kinds are for the role `billing` too. */
const OF_BILLING = /^(payment|subscription|account)\./;

/**
 * Mails events of accounts (`quota.warning`, `payment.failed`, …) to their verified owners and admins
 * about a second after an event is raised; an event of one user is mailed to this user too.
 * Several processes share the work.
 */
export function startEventMail(deps: EventMailDeps) {
  const run = () => mailEvents(deps);
  return runEvery({ name: 'event mails', everyMs: INTERVAL_MS, log: deps.log, run });
}

/** Runs one round. @throws any database error */
export function mailEvents(deps: EventMailDeps) {
  const { db, publicUrl } = deps;
  return mailPendingRows(deps, 'account_events', async (event) => {
    const readers = OF_BILLING.test(event.type) ? [...READERS, 'billing' as const] : READERS;
    const users = await db
      .selectFrom('users')
      .select(['id', 'email'])
      .where('account_id', '=', event.account_id)
      .where('email_verified_at', 'is not', null)
      // The occurrence of an event of one user begins with the id of the user.
      .where((is) =>
        is.or([
          is('role', 'in', readers),
          sql<boolean>`starts_with(${event.dedupe}, ${`${event.type}/`} || id || '/')`,
        ]),
      )
      .where('id', '<>', sql<string>`ALL (${[...event.told]}::text[])`)
      .execute();
    return users.map(
      ({ id, email }): OutgoingMail => ({
        make: () => eventMail(email, publicUrl, event),
        async markSent() {
          await db
            .updateTable('account_events')
            .set({ told: sql<string[]>`array_append(told, ${id})` })
            .where('id', '=', event.id)
            .execute();
        },
      }),
    );
  });
}
