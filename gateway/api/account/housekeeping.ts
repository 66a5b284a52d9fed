import { eraseClosedAccounts } from '../../../lib/accounts/close-account.ts';
import { type EventMailParts, startEventMail } from '../../../lib/accounts/event-mail.ts';
import { raiseReminders } from '../../../lib/accounts/reminders.ts';
import { startRetention } from '../../../lib/accounts/retention.ts';
import { renewDue } from '../../../lib/accounts/subscriptions.ts';
import { startTicketMail, type TicketMailParts } from '../../../lib/accounts/support.ts';
import { type Repetition, repeat } from '../../../lib/repeat.ts';
import { HOUSEKEEPING_MS } from '../limits.ts';

/**
 * What is done for accounts beside requests, by any number of processes at once: mails of events
 * and tickets, renewals, reminders, erasure of closed accounts, deletion of old rows. One that fails
 * holds up no other, and no run of one overlaps its next.
 */
export function startHousekeeping(parts: EventMailParts & TicketMailParts): Repetition {
  const { db, log } = parts;
  const everyMs = HOUSEKEEPING_MS;
  const jobs = [
    startEventMail(parts),
    startTicketMail(parts),
    startRetention(db, { log }),
    repeat({ name: 'renewals', everyMs, log, run: () => renewDue(db) }),
    repeat({ name: 'reminders', everyMs, log, run: () => raiseReminders(db) }),
    repeat({
      name: 'erasure of closed accounts',
      everyMs,
      log,
      run: () => eraseClosedAccounts(db),
    }),
  ];
  return {
    async close() {
      await Promise.all(jobs.map((job) => job.close()));
    },
  };
}
