import { Kysely, PostgresDialect } from 'kysely';
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

/** Opens a pool; it connects when it is used first. `destroy()` ends it. */
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
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
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
