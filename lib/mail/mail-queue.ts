import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../log/log.ts';
import { createCounter } from '../metrics/metrics.ts';
import { isMailRefused, type Mail, type Mailer } from './mailer.ts';

/** Bound on waiting mails, including mails being sent; further mails are dropped. */
const MAILS_MAX = 1_000;
/** Mails sent at the same time. */
const SENDERS_MAX = 4;
/** Waits between the attempts at one mail; a mail that is itself refused has one attempt. */
const RETRY_WAITS_MS = [1_000, 5_000];
/** Time for waiting mails to leave at the end; below the time that a process has to stop. */
const DRAIN_MS = 2_000;

/** Loads the mail to send; `undefined` means that no mail is due any more. */
type MailJob = () => Promise<Mail | undefined>;

export type MailQueue = ReturnType<typeof createMailQueue>;

const dropped = createCounter({
  name: 'pillole_mails_dropped_total',
  help: 'Mails not sent: full = queue at its bound, failed = not accepted, closed = at the stop.',
  labelNames: ['reason'],
});

/**
 * Sends mails outside the requests that cause them: the time of an answer must not reveal whether a
 * mail was sent. The queue is in memory only: a killed process loses its waiting mails, and their
 * recipients request them again. The mailer stays open at the close. Not a `GroupCommit`: each mail is
 * sent and retried by itself.
 */
export function createMailQueue({
  mailer,
  log,
  mailsMax = MAILS_MAX,
  retryWaitsMs = RETRY_WAITS_MS,
  drainMs = DRAIN_MS,
}: {
  readonly mailer: Pick<Mailer, 'send'>;
  readonly log: Log;
  readonly mailsMax?: number;
  readonly retryWaitsMs?: readonly number[];
  readonly drainMs?: number;
}) {
  const waiting: MailJob[] = [];
  const closing = new AbortController();
  const idlers: (() => void)[] = [];
  let sending = 0;

  const drop = (reason: 'full' | 'failed' | 'closed', count = 1, err?: unknown) => {
    dropped.inc({ reason }, count);
    log.error({ err, reason, count }, 'mails were dropped');
  };
  const send = async (job: MailJob) => {
    let found: { readonly mail: Mail | undefined } | undefined;
    for (let attempt = 0; ; attempt += 1) {
      try {
        found ??= { mail: await job() };
        if (found.mail !== undefined) await mailer.send(found.mail);
        return;
      } catch (error) {
        const waitMs = retryWaitsMs[attempt];
        if (waitMs === undefined || isMailRefused(error)) return drop('failed', 1, error);
        // When the process stops, the last attempt follows at once.
        await sleep(waitMs, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  };
  const next = () => {
    const job = waiting.shift();
    if (job === undefined) {
      if (sending === 0) for (const idle of idlers.splice(0)) idle();
      return;
    }
    sending += 1;
    void send(job).finally(() => {
      sending -= 1;
      next();
    });
  };
  const idle = () =>
    sending === 0 && waiting.length === 0
      ? Promise.resolve()
      : new Promise<void>((resolve) => idlers.push(resolve));

  return {
    /** Never waits and never fails: a mail over the bound is dropped, logged and counted. */
    add(job: MailJob): void {
      if (closing.signal.aborted) drop('closed');
      else if (waiting.length + sending >= mailsMax) drop('full');
      else {
        waiting.push(job);
        if (sending < SENDERS_MAX) next();
      }
    },
    /** Resolves when no mail is waiting. */
    idle,
    /** Sends waiting mails for at most 2 s; drops the rest, logged and counted. */
    async close(): Promise<void> {
      closing.abort();
      const drained = new AbortController();
      await Promise.race([
        idle(),
        sleep(drainMs, undefined, { signal: drained.signal }).catch(() => undefined),
      ]);
      drained.abort();
      const left = waiting.splice(0).length + sending;
      if (left > 0) drop('closed', left);
    },
  };
}
