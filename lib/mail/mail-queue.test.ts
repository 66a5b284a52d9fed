import { afterEach, expect, test } from 'vitest';
import { openTestSmtp, type TestSmtp } from '../../testing/smtp.ts';
import { waitFor } from '../../testing/wait.ts';
import type { Log } from '../log/log.ts';
import { createMailQueue, type MailQueue } from './mail-queue.ts';
import { type Mail, type Mailer, openMailer } from './mailer.ts';

/** The lines that were logged as errors. */
let errors: { reason: string; count: number }[] = [];
const log = { error: (entry: { reason: string; count: number }) => errors.push(entry) };
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  errors = [];
});

function open(mailer: Pick<Mailer, 'send'>, more = {}): MailQueue {
  const queue = createMailQueue({
    mailer,
    log: log as unknown as Log,
    retryWaitsMs: [1, 1],
    ...more,
  });
  closers.push(() => queue.close());
  return queue;
}

async function openSmtp(): Promise<{ smtp: TestSmtp; mailer: Mailer }> {
  const smtp = await openTestSmtp();
  const mailer = openMailer(smtp.config);
  closers.push(smtp.close, async () => mailer.close());
  return { smtp, mailer };
}

const mailTo = (to: string): Mail => ({ to, subject: 'Hello', text: 'Hello\n' });
const job = (to: string) => async () => mailTo(to);
/** A server that accepts no mail and never answers. */
const silent = { send: () => new Promise<void>(() => {}) };

test('mails are sent without delaying the caller', async () => {
  const { smtp, mailer } = await openSmtp();
  const queue = open(mailer);
  for (let mail = 0; mail < 20; mail += 1) queue.add(job(`${mail}@example.com`));
  queue.add(async () => undefined);
  expect(smtp.mails).toEqual([]);
  await queue.idle();
  expect(new Set(smtp.mails.map((mail) => mail.recipients[0])).size).toBe(20);
  expect(errors).toEqual([]);
});

test('a mail over the bound is dropped and logged at once', async () => {
  const queue = open(silent, { mailsMax: 10, drainMs: 1 });
  for (let mail = 0; mail < 12; mail += 1) queue.add(job('a@example.com'));
  expect(errors).toMatchObject([
    { reason: 'full', count: 1 },
    { reason: 'full', count: 1 },
  ]);
});

test('a failed mail is retried but made only once; a refused mail is not retried', async () => {
  const { smtp, mailer } = await openSmtp();
  let tries = 0;
  let made = 0;
  const queue = open({
    send(mail) {
      tries += 1;
      return tries < 3 ? Promise.reject(new Error('connect ECONNREFUSED')) : mailer.send(mail);
    },
  });
  queue.add(async () => {
    made += 1;
    return mailTo('a@example.com');
  });
  await queue.idle();
  expect([smtp.mails.length, tries, made]).toEqual([1, 3, 1]);
  smtp.refusals.set('b@example.com', '550 No such user here');
  queue.add(job('b@example.com'));
  await queue.idle();
  expect(tries).toBe(4);
  expect(errors).toMatchObject([{ reason: 'failed' }]);
});

test('a mail that always fails is dropped after its attempts, and the next one is sent', async () => {
  const { smtp, mailer } = await openSmtp();
  const queue = open({
    send: (mail) => (mail.to.startsWith('a') ? Promise.reject(new Error('no')) : mailer.send(mail)),
  });
  queue.add(job('a@example.com'));
  queue.add(() => Promise.reject(new Error('the database is away')));
  queue.add(job('b@example.com'));
  await waitFor('the next', () => smtp.mails.length === 1);
  await queue.idle();
  expect(errors).toMatchObject([{ reason: 'failed' }, { reason: 'failed' }]);
});

test('close sends the waiting mails and accepts no more', async () => {
  const { smtp, mailer } = await openSmtp();
  const queue = open(mailer);
  for (let mail = 0; mail < 10; mail += 1) queue.add(job(`${mail}@example.com`));
  await queue.close();
  expect(smtp.mails).toHaveLength(10);
  queue.add(job('late@example.com'));
  expect(errors).toMatchObject([{ reason: 'closed', count: 1 }]);
  expect(smtp.mails).toHaveLength(10);
});

test('close gives up on a server that never answers, and counts the lost mails', async () => {
  const queue = open(silent, { drainMs: 20 });
  for (let mail = 0; mail < 10; mail += 1) queue.add(job('a@example.com'));
  await queue.close();
  expect(errors).toMatchObject([{ reason: 'closed', count: 10 }]);
});
