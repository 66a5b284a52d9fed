import { SMTPServer } from 'smtp-server';
import type { MailConfig } from '../lib/mail/config.ts';

/** A mail as an SMTP server received it. */
export interface ReceivedMail {
  /** The addresses of the envelope. */
  readonly sender: string;
  readonly recipients: readonly string[];
  /** Header lines with names in lower case; folded lines are joined. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly text: string;
}

/** A real SMTP server in this process. */
export interface TestSmtp {
  readonly config: MailConfig;
  /** Accepted mails in order. */
  readonly mails: ReceivedMail[];
  /** Rejected recipients, with the line of the reply. */
  readonly refusals: Map<string, string>;
  close(): Promise<void>;
}

export const SMTP_LOGIN = { user: 'pillole', password: 'right' } as const;

/** Opens a server on a free port. It requires a login only if `needsLogin`. */
export async function openTestSmtp({ needsLogin = false } = {}): Promise<TestSmtp> {
  const mails: ReceivedMail[] = [];
  const refusals = new Map<string, string>();
  const server = new SMTPServer({
    authOptional: !needsLogin,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 100,
    onAuth({ username, password }, _session, done) {
      const isRight = username === SMTP_LOGIN.user && password === SMTP_LOGIN.password;
      done(isRight ? null : new Error('535 Authentication failed'), { user: username });
    },
    onRcptTo({ address }, _session, done) {
      const line = refusals.get(address);
      if (line === undefined) return done();
      done(Object.assign(new Error(line.slice(4)), { responseCode: Number(line.slice(0, 3)) }));
    },
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push({
          sender: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          recipients: envelope.rcptTo.map(({ address }) => address),
          ...parseMail(Buffer.concat(chunks).toString('latin1')),
        });
        done();
      });
    },
  });
  const listener = server.listen(0, '127.0.0.1');
  await new Promise<void>((resolve) => listener.once('listening', () => resolve()));
  const { port } = listener.address() as { port: number };
  const login = needsLogin ? `${SMTP_LOGIN.user}:${SMTP_LOGIN.password}@` : '';
  return {
    config: {
      smtpUrl: `smtp://${login}127.0.0.1:${port}`,
      outboxFolder: '/nowhere',
      from: 'pillole <no-reply@pillole.example>',
      support: 'support@pillole.example',
    },
    mails,
    refusals,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Parses a mail with one text part (RFC 5322, RFC 2045). */
export function parseMail(message: string): Pick<ReceivedMail, 'headers' | 'text'> {
  const end = message.indexOf('\r\n\r\n');
  const headers = message
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    });
  const body = message.slice(end + 4).replaceAll('\r\n', '\n');
  const encoding = headers.find(([name]) => name === 'content-transfer-encoding')?.[1];
  return { headers, text: Buffer.from(decode(body, encoding), 'latin1').toString('utf8') };
}

function decode(body: string, encoding: string | undefined): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('latin1');
  if (encoding !== 'quoted-printable') return body;
  return body
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
}

/** All values of a header. */
export function headerOf(mail: Pick<ReceivedMail, 'headers'>, wanted: string): readonly string[] {
  return mail.headers.filter(([name]) => name === wanted).map(([, value]) => value);
}
