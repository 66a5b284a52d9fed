import { sql } from 'kysely';
import type { Log } from '../log.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import { eventMail } from './mails.ts';

const INTERVAL_MS = 1_000;
/** Events of one round: their rows are locked while the mails leave. */
const EVENTS_MAX = 20;
/** An event that could not be told for so long is told by nobody any more. */
const GIVE_UP_AFTER_DAYS = 3;

/**
 * Mails events of accounts (`quota.warning`, `payment.failed`, …) to their verified users, about a
 * second after they were raised. Several processes share the work; a mail that is not taken is
 * tried again each round.
 */
export function startEventMail(options: {
  readonly db: Database;
  readonly mailer: Mailer;
  readonly publicUrl: string;
  readonly log: Log;
}): { close(): Promise<void> } {
  let round: Promise<void> | undefined;
  const timer = setInterval(() => {
    round ??= mailEvents(options)
      .then(
        () => undefined,
        (error) => options.log.warn({ err: error }, 'events could not be mailed'),
      )
      .finally(() => {
        round = undefined;
      });
  }, INTERVAL_MS);
  return {
    async close() {
      clearInterval(timer);
      await round;
    },
  };
}

/**
 * Mails what waits. @returns how many events
 * @throws when a mail is not taken: the round is undone, so that those before it may come twice
 */
export async function mailEvents({
  db,
  mailer,
  publicUrl,
}: {
  readonly db: Database;
  readonly mailer: Mailer;
  readonly publicUrl: string;
}): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const events = await tx
      .selectFrom('account_events')
      .selectAll()
      .where('mailed_at', 'is', null)
      .where('created_at', '>', sql<Date>`now() - make_interval(days => ${GIVE_UP_AFTER_DAYS})`)
      .orderBy('id')
      .limit(EVENTS_MAX)
      .forUpdate()
      .skipLocked()
      .execute();
    for (const event of events) {
      const users = await tx
        .selectFrom('users')
        .select('email')
        .where('account_id', '=', event.account_id)
        .where('email_verified_at', 'is not', null)
        .execute();
      for (const { email } of users) await mailer.send(eventMail(email, publicUrl, event));
      await tx
        .updateTable('account_events')
        .set({ mailed_at: sql<Date>`now()` })
        .where('id', '=', event.id)
        .execute();
    }
    return events.length;
  });
}
