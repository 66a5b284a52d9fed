import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Migration, Migrator, sql } from 'kysely';
import { packageRoot } from '../files/package-root.ts';
import { silentLog } from '../log/log.ts';
import { type Database, MIGRATION_TIMEOUTS, openDatabase, schemaName } from './database.ts';

const FOLDER = path.join(packageRoot, 'deploy', 'sql', 'postgres');

/**
 * Applies the pending numbered files of deploy/sql/postgres in one transaction under a lock: of
 * several processes that start together, one migrates and the others wait.
 * @throws any database error; then no file was applied
 */
export async function migrate(url: string, namespace: string): Promise<void> {
  const schema = schemaName(namespace);
  const db = openDatabase({
    url,
    namespace,
    name: 'migrate',
    log: silentLog,
    connectionsMax: 2,
    timeouts: MIGRATION_TIMEOUTS,
  });
  try {
    await createSchema(db, schema);
    const migrator = new Migrator({
      db,
      provider: { getMigrations: async () => readMigrations() },
      migrationTableSchema: schema,
    });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
  } finally {
    await db.destroy();
  }
}

/** The files that `migrate` has not applied yet. @throws any database error, without tables too */
export async function pendingMigrations(db: Database): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration`.execute(db);
  const applied = new Set(rows.map(({ name }) => name));
  return Object.keys(readMigrations()).filter((name) => !applied.has(name));
}

/** IF NOT EXISTS alone is not enough: of two concurrent statements that find no schema, one fails. */
async function createSchema(db: Database, schema: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext(${`schema ${schema}`}))`.execute(tx);
    await sql`CREATE SCHEMA IF NOT EXISTS ${sql.id(schema)}`.execute(tx);
  });
}

function readMigrations(): Record<string, Migration> {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'));
  return Object.fromEntries(
    files.sort().map((name) => {
      const text = readFileSync(path.join(FOLDER, name), 'utf8');
      return [
        name.slice(0, -'.sql'.length),
        { up: async (db) => void (await sql.raw(text).execute(db)) },
      ];
    }),
  );
}
