import type { Log } from '../log.ts';
import { isMailRefused, type Mail, type Mailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import {
  type Claimed,
  claimMail,
  type MailedTable,
  parkOld,
  putOffMail,
  settleMail,
} from './mail-claims.ts';

/** Rows of one round, one after another. */
const ROWS_MAX = 20;

/** What a round mails with. */
export interface RoundParts {
  readonly db: Database;
  readonly mailer: Pick<Mailer, 'send'>;
  readonly log: Log;
}

/** One mail of a row. */
export interface Outgoing {
  make(): Mail;
  /** Remembers that it was taken, so that another attempt at the row leaves it out. */
  remember?(): Promise<void>;
}

/** What became of the rows of one round; those of neither kind were put off. */
export interface Mailed {
  readonly mailed: number;
  readonly refused: readonly string[];
  readonly parked: readonly string[];
  /** Why the round ended early: no mail is taken now. */
  readonly failure: unknown;
}

/**
 * Mails rows that wait, oldest first, each by itself: what happens to one changes nothing for
 * another. A mail that is refused, or that cannot be made, puts its row off for 10 minutes and
 * longer, six times in all; while the server takes nothing the round ends, and the row waits for 2
 * to 60 s. Rows that have used up their attempts, or 3 days, are parked and logged. A process that
 * dies after a mail was taken and before that was written has it sent again, 2 minutes later.
 * @throws what the database says
 */
export async function mailRows<Row extends Claimed>(
  { db, mailer, log }: RoundParts,
  table: MailedTable,
  find: (row: Row) => Promise<readonly Outgoing[]>,
): Promise<Mailed> {
  const refused: string[] = [];
  const parked = [...(await parkOld(db, table))];
  if (parked.length > 0) log.error({ table, rows: parked }, 'mails were given up after 3 days');
  let mailed = 0;
  for (let count = 0; count < ROWS_MAX; count += 1) {
    const row = await claimMail<Row>(db, table);
    if (row === undefined) break;
    const { own, away } = await sendAll(mailer, await find(row));
    const error = own ?? away;
    if (error === undefined) {
      await settleMail(db, table, row.id);
      mailed += 1;
      continue;
    }
    const told = { err: error, table, row: row.id, attempts: row.attempts };
    if (await putOffMail(db, table, row, own !== undefined)) {
      log.error(told, 'a mail was refused again and again: it is given up');
      parked.push(row.id);
    } else log.warn(told, 'a mail was not taken: it is tried again');
    if (own !== undefined) refused.push(row.id);
    if (away !== undefined) return { mailed, refused, parked, failure: away };
  }
  return { mailed, refused, parked, failure: undefined };
}

/** Sends to all who can be reached: one recipient who is refused holds up no other. */
async function sendAll(
  mailer: Pick<Mailer, 'send'>,
  mails: readonly Outgoing[],
): Promise<{ readonly own?: unknown; readonly away?: unknown }> {
  let own: unknown;
  for (const { make, remember } of mails) {
    let mail: Mail;
    try {
      mail = make();
    } catch (error) {
      own = error;
      continue;
    }
    try {
      await mailer.send(mail);
    } catch (error) {
      if (!isMailRefused(error)) return { own, away: error };
      own = error;
      continue;
    }
    await remember?.();
  }
  return { own };
}
