import { sql } from 'kysely';
import { runEvery } from '../../lib/timing/run-every.ts';
import { eventMail } from './mails.ts';
import { mailPendingRows, type OutgoingMail, type PendingMailDeps } from './pending-mails.ts';

const INTERVAL_MS = 1_000;

export type EventMailDeps = PendingMailDeps & { readonly publicUrl: string };

/**
 * Mails events of accounts (`quota.warning`, `payment.failed`, …) to their verified users about a
 * second after an event is raised. Several processes share the work.
 */
export function startEventMail(deps: EventMailDeps) {
  const run = () => mailEvents(deps);
  return runEvery({ name: 'event mails', everyMs: INTERVAL_MS, log: deps.log, run });
}

/** Runs one round. @throws any database error */
export function mailEvents(deps: EventMailDeps) {
  const { db, publicUrl } = deps;
  return mailPendingRows(deps, 'account_events', async (event) => {
    const users = await db
      .selectFrom('users')
      .select(['id', 'email'])
      .where('account_id', '=', event.account_id)
      .where('email_verified_at', 'is not', null)
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
