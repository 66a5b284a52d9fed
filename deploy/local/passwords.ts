import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { POSTGRES_ROLES, type PostgresRole, roleName } from '../../lib/postgres/roles.ts';
import { SetupError } from './setup-error.ts';
import type { StackLayout } from './stack-layout.ts';

const NAMES = [
  'postgres',
  ...POSTGRES_ROLES.map((role) => roleName(role)),
  'clickhouse',
  'clickhouse_analyst',
] as const;

/** Passwords of the engines of one stack by user, of letters, digits, `-` and `_`. */
export type Passwords = Readonly<Record<(typeof NAMES)[number], string>>;

/**
 * Reads the stack's passwords, and creates those that are missing. The engines are given the
 * passwords at each start, so a lost file is made again.
 */
export function ensurePasswords(file: string): Passwords {
  const known: Partial<Passwords> = existsSync(file) ? readPasswords(file) : {};
  const missing = NAMES.filter((name) => known[name] === undefined);
  const created = missing.map((name) => [name, randomBytes(32).toString('base64url')] as const);
  const all = { ...known, ...Object.fromEntries(created) } as Passwords;
  // Written even if complete, because a copy may be readable to others.
  writeFileAtomically(file, `${JSON.stringify(all, null, 2)}\n`);
  return all;
}

function readPasswords(file: string): Partial<Passwords> {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    if (NAMES.every((name) => /^[\w-]{43}$/.test(String(value[name] ?? 'x'.repeat(43))))) {
      return value as Partial<Passwords>;
    }
  } catch {
    // Reported below.
  }
  throw new SetupError(`${file} is damaged: remove it, and the next start makes new passwords.`);
}

/** Addresses of PostgreSQL, one for each role. */
export type PostgresUrls = Readonly<Record<PostgresRole, string>>;

/** @returns for each role what `url` makes of it */
export function forEachRole(url: (role: PostgresRole) => string): PostgresUrls {
  return Object.fromEntries(POSTGRES_ROLES.map((role) => [role, url(role)])) as PostgresUrls;
}

/**
 * Writes the passwords of people in the forms that psql and curl read: a command line is visible to
 * every user of the machine.
 */
export function writePasswordFiles(
  layout: Pick<StackLayout, 'pgpass' | 'analystNetrc'>,
  passwords: Passwords,
): void {
  const admin = roleName('admin');
  writeFileAtomically(layout.pgpass, `*:*:*:${admin}:${passwords[admin]}\n`);
  const analyst = `machine 127.0.0.1 login analyst password ${passwords.clickhouse_analyst}\n`;
  writeFileAtomically(layout.analystNetrc, analyst);
}
