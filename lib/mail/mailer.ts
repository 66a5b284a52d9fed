import { randomBytes } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createTransport, type SendMailOptions } from 'nodemailer';
import type { MailConfig } from './config.ts';

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Where an answer goes. */
  readonly replyTo?: string;
  readonly priority?: 'high' | 'normal' | 'low';
}

/** Sends mail. */
export interface Mailer {
  /** @throws when it was not taken; then it may be sent again. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

const SMTP_TIMEOUT_MS = 10_000;
const TEXT_CHARS_MAX = 64 * 1024;

/**
 * Opens the one way out for mail: an SMTP server, or without one a folder with one `.eml` file a
 * mail, in order of time, readable by their owner alone.
 */
export function openMailer(config: MailConfig): Mailer {
  const options = (mail: Mail): SendMailOptions => ({
    from: config.from,
    to: addressLine(mail.to),
    subject: oneLine(mail.subject),
    text: mail.text.slice(0, TEXT_CHARS_MAX),
    ...(mail.replyTo === undefined ? {} : { replyTo: addressLine(mail.replyTo) }),
    ...(mail.priority === undefined ? {} : { priority: mail.priority }),
    // No file and no address is ever read on behalf of a text.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  if (config.smtpUrl === undefined) {
    const composer = createTransport({ streamTransport: true, buffer: true });
    return {
      async send(mail) {
        const { message } = await composer.sendMail(options(mail));
        await keep(config.outboxFolder, message as Buffer);
      },
      close: () => composer.close(),
    };
  }
  const transport = createTransport({
    url: config.smtpUrl,
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
  });
  return {
    async send(mail) {
      await transport.sendMail(options(mail));
    },
    close: () => transport.close(),
  };
}

/**
 * Whether a mail that was not taken was refused itself, its sender, recipient or text: others may
 * well be taken. Otherwise the server was not reached, or takes nothing from us now.
 */
export function isMailRefused(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === 'EENVELOPE' || code === 'EMESSAGE';
}

/** With a line break, or a space in its place, an address would be read as somebody else's. */
function addressLine(text: string): string {
  if (oneLine(text) === text) return text;
  throw Object.assign(new Error('An address must be one line'), { code: 'EENVELOPE' });
}

/** A line break in a subject would begin a header of somebody else's choice. */
function oneLine(text: string): string {
  return text.replaceAll(/[\r\n\0]+/g, ' ');
}

async function keep(folder: string, message: Buffer): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const time = new Date().toISOString().replaceAll(':', '-');
  const file = path.join(folder, `${time}-${randomBytes(4).toString('hex')}.eml`);
  // Whole or not at all: whoever watches the folder reads what it sees.
  await writeFile(`${file}.part`, message, { mode: 0o600 });
  await rename(`${file}.part`, file);
}
