import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'kysely';
import {
  CREDENTIAL_LIMITS,
  type Credential,
  readCredentialFile,
} from '../../domain/access/generator-credentials.ts';
import { writeAudit } from '../../domain/accounts/audit.ts';
import { AdminError, type AdminSession } from './admin-session.ts';
import { replacePrivateFile } from './private-file.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The credentials of a file as the operator sees them, without the tokens. */
export function listGenerators(file: string) {
  return readFile(file).map((credential) => ({
    name: credential.name,
    expiresAt: formatExpiry(credential) ?? null,
    live: isLive(credential),
  }));
}

/**
 * Adds a credential to the file that the ingest gateway watches.
 * @returns the token, which is shown once: the file keeps only its SHA-256
 * @throws AdminError
 */
export function createGenerator(
  session: AdminSession,
  options: { readonly name: string; readonly file: string; readonly expires: Date | undefined },
) {
  const { name, file, expires } = options;
  if (!NAME.test(name)) {
    throw new AdminError(
      'A name has 1 to 64 of A-Z a-z 0-9 . _ - and starts with a letter or a digit.',
    );
  }
  return changeFile(session, file, 'generator.created', name, (credentials) => {
    const live = credentials.filter(isLive);
    if (live.some((credential) => credential.name === name)) {
      throw new AdminError(`${name} already has a token: revoke it first, or choose another name.`);
    }
    if (live.length >= CREDENTIAL_LIMITS.credentialsMax) {
      const max = CREDENTIAL_LIMITS.credentialsMax;
      throw new AdminError(`${file} holds ${max} generators, the maximum: revoke one first.`);
    }
    const token = `gen_${randomBytes(32).toString('base64url')}`;
    const sha256 = createHash('sha256').update(token).digest();
    const expiresAt = expires === undefined ? undefined : expires.getTime() * 1000;
    const added = { name, sha256, expiresAt };
    const result = { name, token, expiresAt: formatExpiry(added) ?? null };
    return { credentials: [...live, added], result };
  });
}

/** Revokes the token of a generator: the gateway rejects the token within about a second. */
export function revokeGenerator(
  session: AdminSession,
  { name, file }: { readonly name: string; readonly file: string },
) {
  return changeFile(session, file, 'generator.revoked', name, (credentials) => {
    const live = credentials.filter(isLive);
    if (!live.some((credential) => credential.name === name)) {
      throw new AdminError(`${file} has no active generator ${name}.`);
    }
    // The credential stays, expired: the gateway ignores an empty file and keeps the old ones.
    const now = Date.now() * 1000;
    const after = live.map((entry) => (entry.name === name ? { ...entry, expiresAt: now } : entry));
    const result = { name, expiresAt: formatExpiry({ expiresAt: now }) ?? null, live: false };
    return { credentials: after, result };
  });
}

/** Makes one change at a time over all machines, in one transaction with its audit entry. */
function changeFile<T>(
  { db, operator }: AdminSession,
  file: string,
  action: string,
  name: string,
  change: (credentials: readonly Credential[]) => {
    readonly credentials: readonly Credential[];
    readonly result: T;
  },
): Promise<T> {
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext('generator credentials'))`.execute(tx);
    const { credentials, result } = change(existsSync(file) ? readFile(file) : []);
    const detail = { file: path.resolve(file) };
    await writeAudit(tx, { ...operator, accountId: null, action, target: name, detail });
    await replaceFile(file, credentials);
    return result;
  });
}

function readFile(file: string): readonly Credential[] {
  const read = readCredentialFile(file);
  if (read.ok) return read.credentials;
  throw new AdminError(`${read.reason} Correct it, or name another file with --file.`);
}

async function replaceFile(file: string, credentials: readonly Credential[]): Promise<void> {
  // JSON.stringify leaves out an `expires_at` that is undefined.
  const lines = credentials.map((credential) => {
    const { name, sha256 } = credential;
    const entry = { name, sha256: sha256.toString('hex'), expires_at: formatExpiry(credential) };
    return `${JSON.stringify(entry)}\n`;
  });
  replacePrivateFile(file, lines.join(''));
}

function formatExpiry({ expiresAt }: Pick<Credential, 'expiresAt'>): string | undefined {
  return expiresAt === undefined ? undefined : new Date(expiresAt / 1000).toISOString();
}

function isLive({ expiresAt }: Credential): boolean {
  return expiresAt === undefined || expiresAt > Date.now() * 1000;
}
