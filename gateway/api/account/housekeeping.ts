import { eraseClosedAccounts } from '../../../domain/accounts/account-closure.ts';
import { pruneAttempts } from '../../../domain/accounts/attempts.ts';
import { type EventMailDeps, startEventMail } from '../../../domain/accounts/event-mail.ts';
import { raiseReminders } from '../../../domain/accounts/reminders.ts';
import { startRetention } from '../../../domain/accounts/retention.ts';
import { renewDue } from '../../../domain/accounts/subscriptions.ts';
import { pruneNonces } from '../../../domain/authentication/prune-nonces.ts';
import { type SupportMailDeps, startSupportMail } from '../../../domain/support/support-mail.ts';
import { type Repetition, runEvery } from '../../../lib/timing/run-every.ts';
import { HOUSEKEEPING_MS } from '../limits.ts';

/**
 * Starts the background work of accounts, which any number of processes may run at once: mails of
 * events and tickets, ended windows of attempts, old nonces, renewals, reminders, erasure of closed
 * accounts, deletion of old rows. A failing job does not delay the others, and the runs of a job never
 * overlap.
 */
export function startHousekeeping(parts: EventMailDeps & SupportMailDeps): Repetition {
  const { db, log } = parts;
  const start = (name: string, run: () => Promise<unknown>) =>
    runEvery({ name, everyMs: HOUSEKEEPING_MS, log, run });
  const jobs = [
    startEventMail(parts),
    startSupportMail(parts),
    startRetention(db, { log }),
    start('attempts', () => pruneAttempts(db)),
    start('nonces', () => pruneNonces(db)),
    start('renewals', () => renewDue(db)),
    start('reminders', () => raiseReminders(db)),
    start('erasure of closed accounts', () => eraseClosedAccounts(db)),
  ];
  return { close: async () => void (await Promise.all(jobs.map((job) => job.close()))) };
}
