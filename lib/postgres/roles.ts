import { readFileSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'kysely';
import { packageRoot } from '../files/package-root.ts';
import { type Database, schemaName } from './database.ts';

/** `migrate` owns the tables; each other role has the rights of one process, or of the operator. */
export const POSTGRES_ROLES = [
  'migrate',
  'api',
  'stream',
  'dedicated',
  'webhooks',
  'destinations',
  'admin',
] as const;
export type PostgresRole = (typeof POSTGRES_ROLES)[number];

const FOLDER = path.join(packageRoot, 'deploy', 'sql', 'postgres-roles');

/** Name of a role in PostgreSQL. */
export function roleName<Role extends PostgresRole>(role: Role): `pillole_${Role}` {
  return `pillole_${role}`;
}

/** SQL that a superuser runs in the platform's database to create or update the roles. */
export function rolesScript(): string {
  return readFileSync(path.join(FOLDER, 'roles.sql'), 'utf8');
}

/**
 * Grants the roles their rights in a migrated schema. Without roles, e.g. on a server where every
 * process has the address of one user, does nothing.
 * @throws any database error
 */
export async function grantRights(db: Database, namespace: string): Promise<void> {
  const { rows } = await sql<{ exists: boolean }>`
    SELECT to_regrole(${roleName('api')}) IS NOT NULL AS exists`.execute(db);
  if (rows[0]?.exists !== true) return;
  const grants = readFileSync(path.join(FOLDER, 'grants.sql'), 'utf8');
  await db.transaction().execute(async (tx) => {
    // Concurrent grants on one table fail.
    const lock = `schema ${schemaName(namespace)}`;
    await sql`SELECT pg_advisory_xact_lock(hashtext(${lock}))`.execute(tx);
    await sql.raw(grants).execute(tx);
  });
}
