import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import {
  type CredentialVerdict,
  checkCredential,
  readCredentialFile,
} from '../../lib/generator-credentials.ts';
import type { Log } from '../../lib/log.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { INGEST_LIMITS } from './limits.ts';

/** Answers whose an Authorization header is. */
export interface Credentials {
  check(authorization: string | undefined, now: Micros): CredentialVerdict;
  close(): void;
}

/**
 * Opens a file of credentials and follows it: tokens rotate without a restart. A file that breaks
 * leaves the credentials of before in force, and the log says so.
 */
export function openCredentials(path: string, log: Log): Credentials {
  const first = readCredentialFile(path);
  if (!first.ok) throw new Error(first.reason);
  let credentials = first.credentials;
  let version = versionOf(statSync(path));
  const reload = async () => {
    const now = await stat(path).then(versionOf, () => 'missing');
    if (now === version) return;
    version = now;
    const read = readCredentialFile(path);
    if (read.ok) {
      credentials = read.credentials;
      log.info({ names: credentials.map(({ name }) => name) }, 'credentials were read again');
    } else log.error({ reason: read.reason }, 'the credentials of before stay in force');
  };
  const timer = setInterval(() => void reload(), INGEST_LIMITS.credentialsCheckMs).unref();
  return {
    check: (authorization, now) => checkCredential(credentials, authorization, now),
    close: () => clearInterval(timer),
  };
}

function versionOf(file: { mtimeMs: number; size: number; ino: number }): string {
  return `${file.mtimeMs}/${file.size}/${file.ino}`;
}
