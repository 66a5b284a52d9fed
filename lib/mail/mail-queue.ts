import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../log.ts';
import { createCounter } from '../metrics.ts';
import { isMailRefused, type Mail, type Mailer } from './mailer.ts';

/** Mails that wait, those being sent included; one more is dropped. */
const MAILS_MAX = 1_000;
/** Mails that leave at the same time. */
const SENDERS_MAX = 4;
/** Attempts at one mail, and the waits between them; a mail that was refused itself has one. */
const RETRY_WAITS_MS = [1_000, 5_000];
/** At the end what waits has so long to leave; below the time that a process has to stop. */
const DRAIN_MS = 2_000;

/** A mail, or what finds it: `undefined` = there is none to send after all. */
export type MailJob = () => Promise<Mail | undefined>;

/**
 * Sends mails beside the requests that ask for them: the time of an answer must not tell whether
 * somebody got one. In memory alone: what waits in a process that is killed is lost, and its reader
 * asks again.
 */
export interface MailQueue {
  /** Never waits and never fails: a mail for which there is no room is dropped, logged, counted. */
  add(job: MailJob): void;
  /** Resolves when nothing waits any more. */
  idle(): Promise<void>;
  /** Sends what waits for 2 s at the most; drops the rest, logged and counted. */
  close(): Promise<void>;
}

const dropped = createCounter({
  name: 'pillole_mails_dropped_total',
  help: 'Mails that never left: full = no room in the queue, failed = not taken, closed = at the end',
  labelNames: ['reason'],
});

/** Opens a queue before a mailer, which it does not close. */
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
}): MailQueue {
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
        // The process ends: a last try at once is better than none.
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
    add(job) {
      if (closing.signal.aborted) return drop('closed');
      if (waiting.length + sending >= mailsMax) return drop('full');
      waiting.push(job);
      if (sending < SENDERS_MAX) next();
    },
    idle,
    async close() {
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
