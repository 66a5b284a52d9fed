import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  headerOf,
  openTestSmtp,
  parseMail,
  SMTP_LOGIN,
  type TestSmtp,
} from '../../testing/smtp.ts';
import { isMailRefused, type Mail, type Mailer, openMailer } from './mailer.ts';

const MAIL: Mail = {
  to: 'trader@example.com',
  subject: 'A subject',
  text: 'One line.\nAnother.\n',
};
const FROM = 'pillole <no-reply@pillole.example>';

let smtp: TestSmtp;
let mailer: Mailer;
const open: { close(): unknown }[] = [];

beforeEach(async () => {
  smtp = await openTestSmtp();
  mailer = openMailer(smtp.config);
  open.push(mailer, smtp);
});

afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** The error of a failed send. */
async function failureOf(sent: Promise<void>): Promise<Error> {
  const failure = await sent.then(
    () => undefined,
    (error: Error) => error,
  );
  if (failure === undefined) throw new Error('It was taken.');
  return failure;
}

describe('over SMTP', () => {
  test('a mail arrives with its sender, recipient, subject and text', async () => {
    await mailer.send({ ...MAIL, replyTo: 'boss@example.com', priority: 'high' });
    expect(smtp.mails).toHaveLength(1);
    const [mail] = smtp.mails;
    expect(mail).toMatchObject({
      sender: 'no-reply@pillole.example',
      recipients: [MAIL.to],
      text: MAIL.text,
    });
    expect(headerOf(mail!, 'from')).toEqual([FROM]);
    expect(headerOf(mail!, 'to')).toEqual([MAIL.to]);
    expect(headerOf(mail!, 'subject')).toEqual([MAIL.subject]);
    expect(headerOf(mail!, 'reply-to')).toEqual(['boss@example.com']);
    expect(headerOf(mail!, 'x-priority')).toEqual(['1 (Highest)']);
  });

  test('a text of any alphabet, even with lines that end an SMTP message, arrives unchanged', async () => {
    const text = `日本 größer =3D €\n.\n..\n.QUIT\n${'x'.repeat(3_000)}\nFrom here\n`;
    await mailer.send({ ...MAIL, text });
    expect(smtp.mails.map((mail) => mail.text)).toEqual([text]);
  });

  test('a text is truncated after 64 Ki characters', async () => {
    await mailer.send({ ...MAIL, text: 'a'.repeat(70_000) });
    expect(smtp.mails[0]!.text.trimEnd()).toHaveLength(65_536);
  });

  test.each([
    ['550 No such user here', /550 No such user here/],
    ['452 Mailbox is full', /452 Mailbox is full/],
  ])(
    'a recipient refused with %s: the error says so, the next mail is taken',
    async (line, message) => {
      smtp.refusals.set(MAIL.to, line);
      const failure = await failureOf(mailer.send(MAIL));
      expect(failure.message).toMatch(message);
      expect(isMailRefused(failure)).toBe(true);
      await mailer.send({ ...MAIL, to: 'other@example.com' });
      expect(smtp.mails.map((mail) => mail.recipients)).toEqual([['other@example.com']]);
    },
  );

  test('the client logs in; a wrong login is reported, and is not a fault of the mail', async () => {
    const guarded = await openTestSmtp({ needsLogin: true });
    const { config } = guarded;
    const right = openMailer(config);
    const smtpUrl = config.smtpUrl!.replace(SMTP_LOGIN.password, 'wrong');
    const wrong = openMailer({ ...config, smtpUrl });
    open.push(right, wrong, guarded);
    await right.send(MAIL);
    const failure = await failureOf(wrong.send(MAIL));
    expect(failure.message).toContain('535');
    expect(failure.message).not.toContain('wrong');
    expect(isMailRefused(failure)).toBe(false);
    expect(guarded.mails).toHaveLength(1);
  });

  test('an unreachable server is reported, and is not a fault of the mail', async () => {
    await smtp.close();
    const failure = await failureOf(mailer.send(MAIL));
    expect(failure.message).toMatch(/ECONNREFUSED/);
    expect(isMailRefused(failure)).toBe(false);
  });
});

const HEADERS = ['from', 'to', 'subject', 'message-id', 'content-transfer-encoding', 'date'];
HEADERS.push('mime-version', 'content-type');

describe('no input adds a header or a recipient', () => {
  test.each([
    'A\r\nBcc: eve@example.com',
    'A\nBcc: eve@example.com',
    'A\rBcc: eve@example.com\r\n\r\nAnother text',
    'A\0\r\n\r\n',
    'ü\r\nBcc: eve@example.com',
    `${'word '.repeat(100)}\r\nBcc: eve@example.com`,
  ])('not the subject %j', async (subject) => {
    await mailer.send({ ...MAIL, subject });
    const [mail] = smtp.mails;
    expect(mail!.headers.map(([name]) => name).sort()).toEqual([...HEADERS].sort());
    expect(mail).toMatchObject({ recipients: [MAIL.to], text: MAIL.text });
  });

  test.each([
    'trader@example.com\r\nBcc: eve@example.com',
    'trader@example.com\nRCPT TO:<eve@example.com>',
    '\0eve@example.com',
  ])('not the address %j, which is refused', async (address) => {
    for (const mail of [
      { ...MAIL, to: address },
      { ...MAIL, replyTo: address },
    ]) {
      const failure = await failureOf(mailer.send(mail));
      expect(failure.message).toBe('An address must be one line');
      expect(isMailRefused(failure)).toBe(true);
    }
    expect(smtp.mails).toEqual([]);
  });
});

describe('without a server', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
    open.push({ close: () => rm(folder, { recursive: true }) });
  });

  test('a mail is a file that only its owner can read', async () => {
    const outboxFolder = path.join(folder, 'new', 'outbox');
    const files = openMailer({ ...smtp.config, smtpUrl: undefined, outboxFolder });
    open.push(files);
    await files.send({ ...MAIL, subject: 'First\r\nBcc: eve@example.com' });
    const [name, ...others] = await readdir(outboxFolder);
    expect(others).toEqual([]);
    expect(name).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z-[0-9a-f]{8}\.eml$/);
    const file = path.join(outboxFolder, name!);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(outboxFolder)).mode & 0o777).toBe(0o700);
    const mail = parseMail(await readFile(file, 'latin1'));
    expect(mail.headers.map(([header]) => header).sort()).toEqual([...HEADERS].sort());
    expect(headerOf(mail, 'from')).toEqual([FROM]);
    expect(headerOf(mail, 'to')).toEqual([MAIL.to]);
    expect(mail.text.trimEnd()).toBe(MAIL.text.trimEnd());
    expect(smtp.mails).toEqual([]);
  });

  test('many mails at once become as many complete files', async () => {
    const files = openMailer({ ...smtp.config, smtpUrl: undefined, outboxFolder: folder });
    open.push(files);
    const subjects = Array.from({ length: 30 }, (_, index) => `Subject ${index}`);
    await Promise.all(subjects.map((subject) => files.send({ ...MAIL, subject })));
    const names = await readdir(folder);
    const kept = await Promise.all(
      names.map((name) => readFile(path.join(folder, name), 'latin1')),
    );
    const received = kept.map((mail) => headerOf(parseMail(mail), 'subject')[0]);
    expect(received.sort()).toEqual(subjects.sort());
  });

  test('a folder that cannot be written is reported', async () => {
    const outboxFolder = '/dev/null/outbox';
    const files = openMailer({ ...smtp.config, smtpUrl: undefined, outboxFolder });
    open.push(files);
    expect((await failureOf(files.send(MAIL))).message).toMatch(/ENOTDIR|EEXIST/);
  });
});
