import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import type { Log } from '../log.ts';
import { SchemaIntrospector } from './introspector.ts';
import type { Tables } from './tables.ts';

export type Database = Kysely<Tables>;

export interface DatabaseOptions {
  readonly url: string;
  readonly namespace: string;
  /** Names the connections in pg_stat_activity. */
  readonly name: string;
  readonly log: Log;
  readonly connectionsMax?: number;
  /** For a connection (also for a free one of the pool), and again for each statement. */
  readonly timeouts?: DatabaseTimeouts;
  /**
   * A commit is answered before it is on disk: a crash of PostgreSQL forgets at most 0.6 s (three
   * times wal_writer_delay). For counts alone.
   */
  readonly lazyCommits?: boolean;
}

export interface DatabaseTimeouts {
  readonly connectMs: number;
  /** On the server; the client gives up a tenth later. */
  readonly statementMs: number;
}

/** For what is done beside requests. */
const PATIENT: DatabaseTimeouts = { connectMs: 2_000, statementMs: 5_000 };

/**
 * For what a customer waits for: the first thing that hangs ends the request, so that an answer
 * comes within 2 s at the latest.
 */
export const ANSWER_TIMEOUTS: DatabaseTimeouts = { connectMs: 700, statementMs: 1_100 };

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
  const { connectMs, statementMs } = options.timeouts ?? PATIENT;
  return {
    connectionString: options.url,
    application_name: `pillole-${options.name}`,
    options: settings.join(' '),
    connectionTimeoutMillis: connectMs,
    statement_timeout: statementMs,
    query_timeout: Math.ceil(statementMs * 1.1),
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
  const dialect = new PostgresDialect({ pool: { connect, end: () => pool.end() } });
  dialect.createIntrospector = (db) => new SchemaIntrospector(db, schemaName(options.namespace));
  return new Kysely<Tables>({ dialect });
}

/**
 * Lends a connection of the pool for one transaction or statement. After a time-out the driver
 * goes on to wait for the answer, so that whatever is sent next waits behind it: the connection
 * leaves the pool at once, and what is still asked of it, e.g. a rollback, fails at once.
 */
function lend(client: pg.PoolClient): PostgresPoolClient {
  let lost: Error | undefined;
  let isInTransaction = false;
  const query = async (text: string, values: readonly unknown[]) => {
    if (lost !== undefined) throw lost;
    const verb = /^\s*(\w*)/.exec(text)![1]!.toLowerCase();
    if (verb === 'begin' || verb === 'start') isInTransaction = true;
    try {
      const result = await client.query(text, [...values]);
      if (verb === 'commit' || (verb === 'rollback' && !/\bto\b/i.test(text))) {
        isInTransaction = false;
      }
      return result;
    } catch (error) {
      if (isAnswer(error)) throw error;
      const failure = error as Error;
      const mayBeKept = verb === 'commit' || (!isInTransaction && !HARMLESS.has(verb));
      // Also what the rollback after it fails with: that is what the caller is told.
      lost = mayBeKept && !isUnsent(failure) ? new OutcomeUnknownError(failure) : failure;
      client.release(lost);
      throw lost;
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

/** First words of statements that change nothing by themselves. */
const HARMLESS = new Set(['select', 'begin', 'start', 'rollback', 'savepoint', 'release', 'set']);

/**
 * The answer to a change was lost: a commit, or a statement that is a transaction of its own. The
 * server may have kept it. An answer to a statement amid a transaction that is lost is none of
 * these: without its commit nothing is kept.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError';

  constructor(cause: Error) {
    super(`The answer was lost, the change may have been kept: ${cause.message}`, { cause });
  }
}

/**
 * Whether the server itself said it. Not what it says of a connection that it ends, e.g. at a
 * shutdown amid a commit: of what was on its way that says nothing (SQLSTATE 57P01 to 57P03).
 */
function isAnswer(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^57P0[1-3]$/.test(error.code ?? '');
}

/** Whether the statement never left: the driver knew that the connection is broken. */
function isUnsent({ message }: Error): boolean {
  return /not queryable|connection was closed/i.test(message);
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
  if (error instanceof OutcomeUnknownError) return true;
  const { code, message = '' } = error as { code?: unknown; message?: string };
  if (typeof code === 'string') return /^(?:08|53|57)...$/.test(code) || SYSTEM_CODES.has(code);
  return DRIVER_SAYS.test(message);
}

/** What Node says of a connection that cannot be had or breaks. Mail servers fail by other names. */
const SYSTEM_CODES: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'ENOENT'],
  ...['EAI_AGAIN', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'EADDRNOTAVAIL'],
]);
/** Errors of the driver and its pool that have no code. */
const DRIVER_SAYS =
  /^(?:Query read timeout|timeout expired|timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Client was closed and is not queryable|Cannot use a pool after calling end)/;
