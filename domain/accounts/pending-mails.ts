import type { Log } from '../../lib/log/log.ts';
import { isMailRefused, type Mail, type Mailer } from '../../lib/mail/mailer.ts';
import type { Database } from '../../lib/postgres/database.ts';
import {
  claimMail,
  type MailedRow,
  type MailedTable,
  markMailed,
  parkOld,
  postponeMail,
} from './mail-claims.ts';

/** Rows per round, one after another. */
const ROWS_MAX = 20;

export interface PendingMailDeps {
  readonly db: Database;
  readonly mailer: Pick<Mailer, 'send'>;
  readonly log: Log;
}

/** One mail of a row. */
export interface OutgoingMail {
  make(): Mail;
  /** Records that the mail was accepted, so that another attempt at the row skips it. */
  markSent?(): Promise<void>;
}

/** The rows of one round; rows in none of these lists were postponed. */
export interface MailedRows {
  readonly mailed: number;
  readonly refused: readonly string[];
  readonly parked: readonly string[];
  /** Why the round ended early: the mail server is unavailable. */
  readonly failure: unknown;
}

/**
 * Mails waiting rows, oldest first and independently of each other. A mail that is refused or cannot
 * be composed postpones its row by 10 minutes or more, six times in all; while the mail server is
 * unavailable, the round ends and the row waits 2 to 60 s. Rows that have used up their attempts or 3
 * days are parked and logged. If a process dies between a mail's acceptance and its recording, the
 * mail is sent again 2 minutes later.
 * @throws any database error
 */
export async function mailPendingRows<T extends MailedTable>(
  { db, mailer, log }: PendingMailDeps,
  table: T,
  find: (row: MailedRow<T>) => Promise<readonly OutgoingMail[]>,
): Promise<MailedRows> {
  const refused: string[] = [];
  const parked = [...(await parkOld(db, table))];
  if (parked.length > 0) log.error({ table, rows: parked }, 'mails were given up after 3 days');
  let mailed = 0;
  for (let count = 0; count < ROWS_MAX; count += 1) {
    const row = await claimMail(db, table);
    if (row === undefined) break;
    const { own, away } = await sendAll(mailer, await find(row));
    const error = own ?? away;
    if (error === undefined) {
      await markMailed(db, table, row.id);
      mailed += 1;
      continue;
    }
    const detail = { err: error, table, row: row.id, attempts: row.attempts };
    if (await postponeMail(db, table, row, own !== undefined)) {
      log.error(detail, 'a mail was refused repeatedly and is given up');
      parked.push(row.id);
    } else log.warn(detail, 'a mail was not accepted and will be retried');
    if (own !== undefined) refused.push(row.id);
    if (away !== undefined) return { mailed, refused, parked, failure: away };
  }
  return { mailed, refused, parked, failure: undefined };
}

/** Sends all mails of a row: a refused recipient does not block the others. */
async function sendAll(
  mailer: Pick<Mailer, 'send'>,
  mails: readonly OutgoingMail[],
): Promise<{ readonly own?: unknown; readonly away?: unknown }> {
  let own: unknown;
  for (const { make, markSent } of mails) {
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
    await markSent?.();
  }
  return { own };
}
