import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import type { Log } from '../log.ts';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;

export interface DatabaseOptions {
  readonly url: string;
  readonly namespace: string;
  /** Names the connections in pg_stat_activity. */
  readonly name: string;
  readonly log: Log;
  readonly connectionsMax?: number;
  /**
   * A commit is answered before it is on disk: a crash of PostgreSQL forgets at most 0.6 s (three
   * times wal_writer_delay). For counts alone.
   */
  readonly lazyCommits?: boolean;
}

/** A new connection that takes longer has failed. */
const CONNECT_TIMEOUT_MS = 2_000;
/** One statement, on the server; the client gives up a little later. */
const STATEMENT_TIMEOUT_MS = 5_000;

/** Schema of our tables: one a namespace, so that tests work side by side in one database. */
export function schemaName(namespace: string): string {
  return namespace === '' ? 'pillole' : `pillole_${namespace.replaceAll(/[^a-z0-9_]/g, '_')}`;
}

/** Settings of a connection that works in our schema; also for connections outside a pool. */
export function connectionConfig(options: Omit<DatabaseOptions, 'log'>): pg.ClientConfig {
  const settings = [
    `-c search_path=${schemaName(options.namespace)}`,
    '-c timezone=UTC',
    ...(options.lazyCommits === true ? ['-c synchronous_commit=off'] : []),
  ];
  return {
    connectionString: options.url,
    application_name: `pillole-${options.name}`,
    options: settings.join(' '),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + 500,
    keepAlive: true,
  };
}

/**
 * Opens a pool; it connects when it is used first. `destroy()` ends it. A connection whose answer
 * did not come is thrown away: one that hangs costs one time-out, not every statement after it.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    ...connectionConfig(options),
    max: options.connectionsMax ?? 10,
    idleTimeoutMillis: 30_000,
  });
  // An idle connection that breaks is replaced; the next query tells whether the server is away.
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection broke'));
  // One that breaks in use fails its query; without a listener it would end the process as well.
  pool.on('connect', (client) => client.on('error', () => {}));
  const connect = async () => lend(await pool.connect());
  return new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: { connect, end: () => pool.end() } }),
  });
}

/**
 * Lends a connection of the pool for one transaction or statement. After a time-out the driver
 * goes on to wait for the answer, so that whatever is sent next waits behind it: the connection
 * leaves the pool at once, and what is still asked of it, e.g. a rollback, fails at once.
 */
function lend(client: pg.PoolClient): PostgresPoolClient {
  let lost: Error | undefined;
  const query = async (text: string, values: readonly unknown[]) => {
    if (lost !== undefined) throw lost;
    try {
      return await client.query(text, [...values]);
    } catch (error) {
      // What the server itself says is an answer; anything else leaves the connection unknown.
      if (!(error instanceof pg.DatabaseError) && lost === undefined) {
        lost = error as Error;
        client.release(lost);
      }
      throw error;
    }
  };
  return {
    // The other form takes a cursor: nobody opens one.
    query: query as unknown as PostgresPoolClient['query'],
    release() {
      if (lost === undefined) client.release();
    },
  };
}

/** Whether an error says that a row with this key exists (SQLSTATE 23505). */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '23505';
}

/**
 * Whether an error says that PostgreSQL cannot be asked now: no connection, a lost one, a
 * time-out, shutting down, out of something (SQLSTATE classes 08, 53, 57).
 */
export function isDatabaseAway(error: unknown): boolean {
  const { code, message = '' } = error as { code?: unknown; message?: string };
  if (typeof code === 'string') return /^(?:08|53|57|E[A-Z]+$)/.test(code);
  return /timeout|terminated|not queryable|Connection/i.test(message);
}
