import { randomBytes } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createTransport, type SendMailOptions } from 'nodemailer';
import type { MailConfig } from './config.ts';

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Address for replies. */
  readonly replyTo?: string;
  readonly priority?: 'high' | 'normal' | 'low';
}

export type Mailer = ReturnType<typeof openMailer>;

const SMTP_TIMEOUT_MS = 10_000;
const TEXT_CHARS_MAX = 64 * 1024;

/**
 * Opens the mailer, through which all mail leaves: an SMTP server, or without one a folder with one
 * `.eml` file per mail, named by time and readable by its owner alone.
 */
export function openMailer(config: MailConfig) {
  const options = (mail: Mail): SendMailOptions => ({
    from: config.from,
    to: addressLine(mail.to),
    subject: oneLine(mail.subject),
    text: mail.text.slice(0, TEXT_CHARS_MAX),
    replyTo: mail.replyTo === undefined ? undefined : addressLine(mail.replyTo),
    priority: mail.priority,
    // The library must never read a file or URL that a mail's text names.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const { smtpUrl } = config;
  const transport = smtpUrl === undefined ? undefined : openSmtp(smtpUrl);
  const composer = createTransport({ streamTransport: true, buffer: true });
  return {
    /** @throws when the mail was not accepted; it may be sent again. */
    async send(mail: Mail): Promise<void> {
      if (transport !== undefined) return void (await transport.sendMail(options(mail)));
      const { message } = await composer.sendMail(options(mail));
      await keep(config.outboxFolder, message as Buffer);
    },
    close: () => (transport ?? composer).close(),
  };
}

function openSmtp(url: string) {
  return createTransport({
    url,
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
  });
}

/**
 * Whether the server refused this mail itself (sender, recipient or text), so that other mails may
 * still be accepted. Otherwise the server was not reached, or accepts no mail at the moment.
 */
export function isMailRefused(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === 'EENVELOPE' || code === 'EMESSAGE';
}

/** An address with a line break, or with a space instead, would be parsed as a different address. */
function addressLine(text: string): string {
  if (oneLine(text) === text) return text;
  throw Object.assign(new Error('An address must be one line'), { code: 'EENVELOPE' });
}

/** A line break in a subject would start a header of the sender's choice. */
function oneLine(text: string): string {
  return text.replaceAll(/[\r\n\0]+/g, ' ');
}

async function keep(folder: string, message: Buffer): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const time = new Date().toISOString().replaceAll(':', '-');
  const file = path.join(folder, `${time}-${randomBytes(4).toString('hex')}.eml`);
  // Renamed when complete: programs that watch the folder never read a part.
  await writeFile(`${file}.part`, message, { mode: 0o600 });
  await rename(`${file}.part`, file);
}
