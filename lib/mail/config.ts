import path from 'node:path';
import type { ConfigReader } from '../config.ts';
import { packageRoot } from '../root.ts';

export interface MailConfig {
  /** `smtp://user:password@host:port` or `smtps://…`; undefined writes files. */
  readonly smtpUrl: string | undefined;
  /** Folder of the files, one a mail. */
  readonly outboxFolder: string;
  readonly from: string;
  /** Where tickets go. */
  readonly support: string;
}

/** Reads how mail leaves: SMTP_URL, else files in MAIL_OUTBOX. */
export function readMailConfig(reader: ConfigReader): MailConfig {
  return {
    smtpUrl: reader.optional('SMTP_URL'),
    outboxFolder: reader.text('MAIL_OUTBOX', path.join(packageRoot, '.local', 'outbox')),
    from: reader.text('MAIL_FROM', 'pillole <no-reply@pillole.invalid>'),
    support: reader.text('SUPPORT_ADDRESS', 'support@pillole.invalid'),
  };
}
