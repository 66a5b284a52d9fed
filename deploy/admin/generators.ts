import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { sql } from 'kysely';
import { writeAudit } from '../../lib/accounts/audit.ts';
import {
  CREDENTIAL_LIMITS,
  type Credential,
  readCredentialFile,
} from '../../lib/generator-credentials.ts';
import { AdminError, type Desk } from './environment.ts';

/** A generator's credential as the operator sees it; the token is not known here. */
export interface GeneratorListed {
  readonly name: string;
  readonly expiresAt: string | null;
  readonly live: boolean;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function listGenerators(file: string): readonly GeneratorListed[] {
  return readFile(file).map((credential) => ({
    name: credential.name,
    expiresAt: timeOf(credential) ?? null,
    live: isLive(credential),
  }));
}

/**
 * Adds a credential to the file that the ingest gateway follows.
 * @returns the token, shown once: only its SHA-256 is kept
 * @throws AdminError
 */
export function createGenerator(
  desk: Desk,
  wanted: { readonly name: string; readonly file: string; readonly expires: Date | undefined },
): Promise<{ readonly name: string; readonly token: string; readonly expiresAt: string | null }> {
  const { name, file, expires } = wanted;
  if (!NAME.test(name)) {
    throw new AdminError('Choose a name of 1 to 64 of A-Z a-z 0-9 . _ - for the generator.');
  }
  return changeFile(desk, file, 'generator.created', name, (credentials) => {
    const live = credentials.filter(isLive);
    if (live.some((credential) => credential.name === name)) {
      throw new AdminError(`${name} has a token: revoke it first, or choose another name.`);
    }
    if (live.length >= CREDENTIAL_LIMITS.credentialsMax) {
      const max = CREDENTIAL_LIMITS.credentialsMax;
      throw new AdminError(`${file} holds ${max} generators, the limit: revoke one first.`);
    }
    const token = `gen_${randomBytes(32).toString('base64url')}`;
    const sha256 = createHash('sha256').update(token).digest();
    const expiresAt = expires === undefined ? undefined : expires.getTime() * 1000;
    const added = { name, sha256, expiresAt };
    const result = { name, token, expiresAt: timeOf(added) ?? null };
    return { credentials: [...live, added], result };
  });
}

/** Ends the token of a generator: the gateway refuses it within about a second. */
export function revokeGenerator(
  desk: Desk,
  { name, file }: { readonly name: string; readonly file: string },
): Promise<GeneratorListed> {
  return changeFile(desk, file, 'generator.revoked', name, (credentials) => {
    const live = credentials.filter(isLive);
    const ended = live.filter((credential) => credential.name === name);
    if (ended.length === 0) throw new AdminError(`${file} has no live generator of this name.`);
    // It stays as an expired one: the gateway keeps what it knows when a file is empty.
    const now = Date.now() * 1000;
    const after = live.map((one) => (one.name === name ? { ...one, expiresAt: now } : one));
    const result = { name, expiresAt: timeOf({ expiresAt: now }) ?? null, live: false };
    return { credentials: after, result };
  });
}

/** One change at a time over all machines; the audit entry stands or falls with it. */
function changeFile<T>(
  { db, operator }: Desk,
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
  const lines = credentials.map((credential) => {
    const { name, sha256 } = credential;
    const expires = timeOf(credential);
    const end = expires === undefined ? {} : { expires_at: expires };
    return `${JSON.stringify({ name, sha256: sha256.toString('hex'), ...end })}\n`;
  });
  const beside = `${file}.${process.pid}.tmp`;
  try {
    const handle = await open(beside, 'wx', 0o600);
    try {
      await handle.writeFile(lines.join(''));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    const { code } = error as NodeJS.ErrnoException;
    throw new AdminError(
      `${file} cannot be written (${code}): choose a folder that you may write.`,
    );
  }
}

function timeOf({ expiresAt }: Pick<Credential, 'expiresAt'>): string | undefined {
  return expiresAt === undefined ? undefined : new Date(expiresAt / 1000).toISOString();
}

function isLive({ expiresAt }: Credential): boolean {
  return expiresAt === undefined || expiresAt > Date.now() * 1000;
}
