import { statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { checkCredential, readCredentialFile } from '../../domain/access/generator-credentials.ts';
import type { Log } from '../../lib/log/log.ts';
import type { Micros } from '../../schemas/timestamp.ts';

const CHECK_EVERY_MS = 1_000;

export type Credentials = ReturnType<typeof openCredentials>;

/**
 * Opens a file of credentials and follows its changes, so that tokens rotate without a restart. If
 * the file becomes invalid, the previous credentials stay in force, and the log says so.
 */
export function openCredentials(path: string, log: Log) {
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
      log.info({ names: credentials.map(({ name }) => name) }, 'credentials reloaded');
      return;
    }
    const message = 'the credentials file is invalid: the previous credentials stay in force';
    log.error({ reason: read.reason }, message);
  };
  const timer = setInterval(() => void reload(), CHECK_EVERY_MS).unref();
  return {
    /** Identifies the generator of an Authorization header. */
    check: (authorization: string | undefined, now: Micros) =>
      checkCredential(credentials, authorization, now),
    close: () => clearInterval(timer),
  };
}

function versionOf(file: { mtimeMs: number; size: number; ino: number }): string {
  return `${file.mtimeMs}/${file.size}/${file.ino}`;
}
