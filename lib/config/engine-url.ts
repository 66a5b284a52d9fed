import { readFileSync, statSync } from 'node:fs';
import type { ConfigReader } from './config.ts';

/** A chain of certificates has a few kB. */
export const PEM_FILE_BYTES_MAX = 1_048_576;

const SCHEMES = {
  SCHEMA_REGISTRY_URL: ['http', 'https'],
  CLICKHOUSE_URL: ['http', 'https'],
  DATABASE_URL: ['postgres', 'postgresql'],
} as const;

/**
 * Reads the address of an engine, and checks what secures the connection. TLS is always verified in
 * full: the certificate must be signed by an authority of `sslrootcert` (by default a public one) and
 * name the host. For PostgreSQL, these are parameters of libpq (section 32.1.2 of its manual); the
 * other two modes of libpq that encrypt without verifying are refused.
 */
export function readEngineUrl(reader: ConfigReader, name: keyof typeof SCHEMES): string {
  const text = reader.need(name);
  if (text !== '') check(reader, name, text);
  return text;
}

function check(reader: ConfigReader, name: keyof typeof SCHEMES, text: string): void {
  const schemes: readonly string[] = SCHEMES[name];
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url?.protocol.slice(0, -1) ?? '';
  // The message never repeats the address, which may hold a password.
  if (url === undefined || !schemes.includes(scheme)) {
    reader.fault(`${name} must be a URL with ${schemes.map((one) => `${one}://`).join(' or ')}`);
    return;
  }
  if (/%(?![0-9a-f]{2})/i.test(url.username + url.password)) {
    reader.fault(`${name}: percent-encode user and password, e.g. % as %25`);
  }
  const [mode, rootFile] = [url.searchParams.get('sslmode'), url.searchParams.get('sslrootcert')];
  if (mode !== null && mode !== 'verify-full' && mode !== 'disable') {
    reader.fault(
      `${name}: sslmode=${mode} does not verify the server: use verify-full, or disable in a network of your own`,
    );
  }
  // `pg` reads ssl=no-verify too, and the last of several values.
  const isUnclear = url.searchParams.has('ssl') || url.searchParams.getAll('sslmode').length > 1;
  if (isUnclear) reader.fault(`${name}: say how TLS is used by one sslmode, without ssl`);
  if (rootFile === null) return;
  if (scheme === 'http' || mode === 'disable') {
    reader.fault(`${name}: sslrootcert without TLS: use https, or sslmode=verify-full`);
  }
  readPemFile(reader, `${name}: sslrootcert`, rootFile);
}

/** The text of a PEM file; a fault if there is none. @param setting names it in the fault */
export function readPemFile(reader: ConfigReader, setting: string, file: string): string {
  try {
    if (statSync(file).size > PEM_FILE_BYTES_MAX) {
      reader.fault(`${setting} ${file} is larger than ${PEM_FILE_BYTES_MAX} bytes`);
      return '';
    }
    const text = readFileSync(file, 'utf8');
    if (!/^-----BEGIN /m.test(text)) reader.fault(`${setting} ${file} is not a PEM file`);
    return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    reader.fault(`${setting} ${file} cannot be read (${code})`);
    return '';
  }
}
