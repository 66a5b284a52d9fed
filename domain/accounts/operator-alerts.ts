import { sql } from 'kysely';
import { fetch } from 'undici';
import type { Mailer } from '../../lib/mail/mailer.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { newId } from '../access/id.ts';
import { mailPendingRows, type PendingMailDeps } from './pending-mails.ts';

export type AlertKind = 'silent' | 'refusals';

/** What is wrong with a generator now. */
export interface Alarm {
  readonly source: string;
  /** One sentence. */
  readonly detail: string;
}

/** Where alerts go; none = there are no alerts. */
export interface AlertReceivers {
  readonly address: string | undefined;
  readonly webhookUrl: string | undefined;
}

/** Generators with an alert of one kind at a time; of more, those that come last by name have none. */
export const ALERTED_MAX = 100;
const KEPT_DAYS = 90;
const POST_TIMEOUT_MS = 5_000;

/**
 * Begins the episodes of alarms that are new, and ends those of alarms that are over. An episode has
 * one row for each receiver, whatever the number of processes and restarts. @throws any database error
 */
export async function updateAlerts(
  db: Database,
  kind: AlertKind,
  alarms: readonly Alarm[],
  { address, webhookUrl }: AlertReceivers,
): Promise<void> {
  const current = [...alarms]
    .sort((a, b) => (a.source < b.source ? -1 : 1))
    .slice(0, ALERTED_MAX)
    .map(({ source, detail }) => ({ source: source.slice(0, 64), detail }));
  const channels = [
    ...(address === undefined ? [] : (['mail'] as const)),
    ...(webhookUrl === undefined ? [] : (['webhook'] as const)),
  ];
  const rows = current.flatMap((alarm) =>
    channels.map((channel) => ({ id: newId('alt'), kind, channel, ...alarm })),
  );
  if (rows.length > 0) {
    await db
      .insertInto('operator_alerts')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  const sources = current.map(({ source }) => source);
  await sql`UPDATE operator_alerts SET ended_at = now()
    WHERE kind = ${kind} AND ended_at IS NULL AND source <> ALL (${sources})`.execute(db);
  await sql`DELETE FROM operator_alerts
    WHERE ended_at < now() - make_interval(days => ${KEPT_DAYS})`.execute(db);
}

/** Sources with a running episode of a kind. */
export async function alertedSources(db: Database, kind: AlertKind): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('operator_alerts')
    .select('source')
    .where('kind', '=', kind)
    .where('ended_at', 'is', null)
    .execute();
  return new Set(rows.map(({ source }) => source));
}

const SUBJECTS = { silent: 'sends no pills', refusals: 'has many pills refused' } as const;

/** Sends waiting alerts, with the retries and the end of all mails. @throws any database error */
export function sendAlerts(deps: PendingMailDeps, { address, webhookUrl }: AlertReceivers) {
  const send: Mailer['send'] = (mail) =>
    mail.to === webhookUrl ? post(webhookUrl, mail.text) : deps.mailer.send(mail);
  return mailPendingRows({ ...deps, mailer: { send } }, 'operator_alerts', async (row) => {
    const to = row.channel === 'mail' ? address : webhookUrl;
    // The setting was removed since: nobody is to be told.
    if (to === undefined) return [];
    const { kind, source, detail, created_at: since } = row;
    const name = source === '' ? 'A generator of unknown name' : `Generator ${source}`;
    const subject = `${name} ${SUBJECTS[kind]}`;
    const data = { type: `generator.${kind}`, source, since, text: `${subject}: ${detail}` };
    const text = row.channel === 'mail' ? `${detail}\n` : JSON.stringify(data);
    return [{ make: () => ({ to, subject: `[pillole] ${subject}`, text }) }];
  });
}

async function post(url: string, body: string): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    redirect: 'error',
    signal: AbortSignal.timeout(POST_TIMEOUT_MS),
  });
  await answer.body?.cancel();
  if (!answer.ok) throw new Error(`The receiver of alerts answered ${answer.status}.`);
}
