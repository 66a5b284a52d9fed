import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Migration, Migrator, sql } from 'kysely';
import { silentLog } from '../log.ts';
import { packageRoot } from '../root.ts';
import { openDatabase, schemaName } from './database.ts';

/** An index over a large table takes its time; so does waiting for another process that makes it. */
const TIMEOUTS = { connectMs: 2_000, statementMs: 20_000 } as const;

const FOLDER = path.join(packageRoot, 'deploy', 'sql', 'postgres');

/**
 * Applies the numbered files of deploy/sql/postgres that are not applied yet, in one transaction
 * under a lock: of several processes that start together one does it and the others wait.
 * @throws what the database says; then nothing was applied.
 */
export async function migrate(url: string, namespace: string): Promise<void> {
  const schema = schemaName(namespace);
  const db = openDatabase({
    ...{ url, namespace, name: 'migrate', log: silentLog, connectionsMax: 2 },
    timeouts: TIMEOUTS,
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

/** IF NOT EXISTS alone is no guard: two that run it together both find nothing, and one fails. */
async function createSchema(db: ReturnType<typeof openDatabase>, schema: string): Promise<void> {
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
        { up: (db) => sql.raw(text).execute(db).then(ignore) },
      ];
    }),
  );
}

function ignore(): void {}
