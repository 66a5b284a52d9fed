import { sql } from 'kysely';
import { type Repetition, repeat } from '../repeat.ts';
import type { Claimed } from './mail-claims.ts';
import { type Mailed, mailRows, type Outgoing, type RoundParts } from './mail-rounds.ts';
import { eventMail } from './mails.ts';

const INTERVAL_MS = 1_000;

/** What events are mailed with. */
export interface EventMailParts extends RoundParts {
  readonly publicUrl: string;
}

interface EventRow extends Claimed {
  readonly account_id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly told: readonly string[];
}

/**
 * Mails events of accounts (`quota.warning`, `payment.failed`, …) to their verified users, about a
 * second after they were raised. Several processes share the work.
 */
export function startEventMail(parts: EventMailParts): Repetition {
  return repeat({
    ...{ name: 'mails of events', everyMs: INTERVAL_MS, log: parts.log },
    run: () => mailEvents(parts),
  });
}

/** One round of it. @throws what the database says */
export function mailEvents(parts: EventMailParts): Promise<Mailed> {
  const { db, publicUrl } = parts;
  return mailRows<EventRow>(parts, 'account_events', async (event) => {
    const users = await db
      .selectFrom('users')
      .select(['id', 'email'])
      .where('account_id', '=', event.account_id)
      .where('email_verified_at', 'is not', null)
      .where('id', '<>', sql<string>`ALL (${[...event.told]}::text[])`)
      .execute();
    return users.map(
      ({ id, email }): Outgoing => ({
        make: () => eventMail(email, publicUrl, event),
        async remember() {
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
