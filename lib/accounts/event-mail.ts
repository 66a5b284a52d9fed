import { sql } from 'kysely';
import type { Log } from '../log.ts';
import { isMailRefused, type Mailer } from '../mail/mailer.ts';
import type { Database } from '../postgres/database.ts';
import { eventMail } from './mails.ts';

const INTERVAL_MS = 1_000;
/** Events of one round: their rows are locked while the mails leave. */
const EVENTS_MAX = 20;
/** An event that could not be told for so long is told by nobody any more. */
const GIVE_UP_AFTER_DAYS = 3;
/** A mail that the server refused, e.g. for its recipient, is tried again after this. */
const REFUSED_RETRY_MS = 10 * 60_000;
/** Events whose refusal is remembered; the first of more are tried again sooner. */
const REFUSED_MAX = 1_000;

/**
 * Mails events of accounts (`quota.warning`, `payment.failed`, …) to their verified users, about a
 * second after they were raised. Several processes share the work. While the server is away all
 * wait and are tried each round; what it refuses is tried again every 10 minutes and holds up
 * nobody else's.
 */
export function startEventMail(options: {
  readonly db: Database;
  readonly mailer: Mailer;
  readonly publicUrl: string;
  readonly log: Log;
}): { close(): Promise<void> } {
  const { log } = options;
  /** When they are tried again, by event; first refused first. */
  const refusedUntilMs = new Map<string, number>();
  let round: Promise<void> | undefined;

  const run = async () => {
    const nowMs = performance.now();
    for (const [id, untilMs] of refusedUntilMs) if (untilMs <= nowMs) refusedUntilMs.delete(id);
    const { refused, failure } = await mailEvents({ ...options, except: refusedUntilMs.keys() });
    for (const { id, error } of refused) {
      log.warn({ err: error, event: id }, 'the mail of an event was refused');
      if (refusedUntilMs.size >= REFUSED_MAX) {
        refusedUntilMs.delete(refusedUntilMs.keys().next().value!);
      }
      refusedUntilMs.set(id, nowMs + REFUSED_RETRY_MS);
    }
    if (failure !== undefined) log.warn({ err: failure }, 'events could not be mailed');
  };
  const timer = setInterval(() => {
    round ??= run()
      .catch((error) => log.warn({ err: error }, 'events could not be mailed'))
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

/** What became of the events of one round. */
export interface EventsMailed {
  readonly mailed: number;
  /** Events whose mail the server refused: they wait, those behind them were told. */
  readonly refused: readonly { readonly id: string; readonly error: unknown }[];
  /** Why the round ended early: no mail is taken now. */
  readonly failure: unknown;
}

/**
 * Mails what waits, oldest first, without the events of `except`.
 * @throws what the database says; when it fails to note them, mails that have left come twice
 */
export async function mailEvents({
  db,
  mailer,
  publicUrl,
  except = [],
}: {
  readonly db: Database;
  readonly mailer: Mailer;
  readonly publicUrl: string;
  readonly except?: Iterable<string>;
}): Promise<EventsMailed> {
  return db.transaction().execute(async (tx) => {
    const events = await tx
      .selectFrom('account_events')
      .selectAll()
      .where('mailed_at', 'is', null)
      .where('created_at', '>', sql<Date>`now() - make_interval(days => ${GIVE_UP_AFTER_DAYS})`)
      .where('id', '<>', sql<string>`ALL (${[...except]}::bigint[])`)
      .orderBy('id')
      .limit(EVENTS_MAX)
      .forUpdate()
      .skipLocked()
      .execute();
    const refused: { id: string; error: unknown }[] = [];
    let mailed = 0;
    for (const event of events) {
      const users = await tx
        .selectFrom('users')
        .select('email')
        .where('account_id', '=', event.account_id)
        .where('email_verified_at', 'is not', null)
        .execute();
      try {
        for (const { email } of users) await mailer.send(eventMail(email, publicUrl, event));
      } catch (error) {
        if (!isMailRefused(error)) return { mailed, refused, failure: error };
        refused.push({ id: event.id, error });
        continue;
      }
      await tx
        .updateTable('account_events')
        .set({ mailed_at: sql<Date>`now()` })
        .where('id', '=', event.id)
        .execute();
      mailed += 1;
    }
    return { mailed, refused, failure: undefined };
  });
}
