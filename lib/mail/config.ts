import path from 'node:path';
import type { ConfigReader } from '../config/config.ts';
import { packageRoot } from '../files/package-root.ts';

export interface MailConfig {
  /** `smtp://user:password@host:port` or `smtps://…`; when undefined, mails become files. */
  readonly smtpUrl: string | undefined;
  /** Folder of these files, one per mail. */
  readonly outboxFolder: string;
  readonly from: string;
  /** Recipient of support tickets. */
  readonly support: string;
}

/** Reads the settings of outgoing mail: SMTP_URL, else files in MAIL_OUTBOX. */
export function readMailConfig(reader: ConfigReader): MailConfig {
  return {
    smtpUrl: reader.get('SMTP_URL'),
    outboxFolder: reader.get('MAIL_OUTBOX') ?? path.join(packageRoot, '.local', 'outbox'),
    from: reader.get('MAIL_FROM'),
    support: reader.get('SUPPORT_ADDRESS'),
  };
}
