import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { parseStrictJson } from '../../lib/json/strict-json.ts';
import { type Micros, parseTimestamp } from '../../schemas/timestamp.ts';

/** Bounds of a credential file. */
export const CREDENTIAL_LIMITS = { credentialsMax: 100, fileBytesMax: 256 * 1024 } as const;

/** A generator that may send pills. The token itself is not stored. */
export interface Credential {
  /** The `source` of its pills. */
  readonly name: string;
  readonly sha256: Buffer;
  readonly expiresAt: Micros | undefined;
}

export type CredentialFile =
  | { readonly ok: true; readonly credentials: readonly Credential[] }
  | { readonly ok: false; readonly reason: string };

export type CredentialVerdict =
  | { readonly kind: 'known'; readonly name: string }
  | { readonly kind: 'missing' | 'invalid' };

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const SHA256 = /^[0-9a-f]{64}$/;
const BEARER = /^Bearer +(gen_[A-Za-z0-9_-]{32,256})$/i;
const FIELDS = new Set(['name', 'sha256', 'expires_at']);

/**
 * Reads credentials from a file: one JSON object per line, or one JSON array of objects, each
 * `{"name": …, "sha256": <of the token, hex>, "expires_at": <ISO 8601, optional>}`.
 */
export function readCredentialFile(path: string): CredentialFile {
  try {
    if (statSync(path).size > CREDENTIAL_LIMITS.fileBytesMax) {
      return fail(`${path} is larger than ${CREDENTIAL_LIMITS.fileBytesMax} bytes.`);
    }
    const parsed = parseCredentials(readFileSync(path));
    return parsed.ok ? parsed : fail(`${path}: ${parsed.reason}`);
  } catch (error) {
    return fail(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Parses the content of a credential file; the reason never repeats the content. */
export function parseCredentials(bytes: Buffer): CredentialFile {
  const entries: unknown[] = [];
  const document = parseStrictJson(bytes);
  if (document.ok && Array.isArray(document.value)) entries.push(...document.value);
  else {
    for (const [index, line] of bytes.toString('utf8').split('\n').entries()) {
      if (line.trim() === '') continue;
      const parsed = parseStrictJson(Buffer.from(line));
      if (!parsed.ok) return fail(`line ${index + 1} is not a JSON object.`);
      entries.push(parsed.value);
    }
  }
  if (entries.length === 0) return fail('the file holds no credential.');
  if (entries.length > CREDENTIAL_LIMITS.credentialsMax) {
    const { credentialsMax } = CREDENTIAL_LIMITS;
    return fail(`the file holds ${entries.length} credentials, the limit is ${credentialsMax}.`);
  }
  const credentials: Credential[] = [];
  for (const [index, entry] of entries.entries()) {
    const parsed = parseCredential(entry);
    if (typeof parsed === 'string') return fail(`credential ${index + 1}: ${parsed}`);
    if (credentials.some(({ sha256 }) => sha256.equals(parsed.sha256))) {
      return fail(`credential ${index + 1}: the same sha256 appears twice.`);
    }
    credentials.push(parsed);
  }
  return { ok: true, credentials };
}

function parseCredential(entry: unknown): Credential | string {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    return 'it is not an object.';
  const { name, sha256, expires_at: expires } = entry as Readonly<Record<string, unknown>>;
  if (Object.keys(entry).some((key) => !FIELDS.has(key))) return 'it has an unknown field.';
  if (typeof name !== 'string' || !NAME.test(name))
    return 'name must be 1 to 64 of A-Z a-z 0-9 . _ -';
  if (typeof sha256 !== 'string' || !SHA256.test(sha256)) {
    return 'sha256 must be 64 lower-case hex digits.';
  }
  const hash = Buffer.from(sha256, 'hex');
  if (expires === undefined) return { name, sha256: hash, expiresAt: undefined };
  const time = typeof expires === 'string' ? parseTimestamp(expires) : undefined;
  if (!time?.ok) return 'expires_at must be ISO 8601 in UTC.';
  return { name, sha256: hash, expiresAt: time.micros };
}

function fail(reason: string): CredentialFile {
  return { ok: false, reason };
}

/** Finds the owner of a token. Every credential is compared, each in constant time. */
export function checkCredential(
  credentials: readonly Credential[],
  authorization: string | undefined,
  now: Micros,
): CredentialVerdict {
  const token = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  if (token === undefined) return { kind: 'missing' };
  const hash = createHash('sha256').update(token).digest();
  let found: Credential | undefined;
  for (const credential of credentials) {
    if (timingSafeEqual(credential.sha256, hash)) found = credential;
  }
  if (found === undefined) return { kind: 'invalid' };
  if (found.expiresAt !== undefined && found.expiresAt <= now) return { kind: 'invalid' };
  return { kind: 'known', name: found.name };
}
