import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import type { Log } from '../log/log.ts';
import { noteDependency } from '../metrics/dependencies.ts';
import { SchemaIntrospector } from './introspector.ts';
import type { Tables } from './tables.ts';

/**
 * The typed query builder, with `sql` fragments where SQL says more: the style of nearly all
 * queries, and the only one for transactions. Statements on a hot path, which are of no use when
 * they come late, are plain SQL over a `StatementPool` (statement-pool.ts). No other style is used.
 */
export type Database = Kysely<Tables>;

export interface DatabaseOptions {
  readonly url: string;
  readonly namespace: string;
  /** Names the connections in pg_stat_activity. */
  readonly name: string;
  readonly log: Log;
  readonly connectionsMax?: number;
  /** For a connection (opening one or waiting for a free one), and again for each statement. */
  readonly timeouts?: DatabaseTimeouts;
  /**
   * A commit is acknowledged before it is on disk: a crash of PostgreSQL loses at most 0.6 s (three
   * times wal_writer_delay). Only for counts.
   */
  readonly lazyCommits?: boolean;
}

export interface DatabaseTimeouts {
  readonly connectMs: number;
  /** On the server; the client gives up after 10 % more. */
  readonly statementMs: number;
}

/** For background work. */
const BACKGROUND_TIMEOUTS: DatabaseTimeouts = { connectMs: 2_000, statementMs: 5_000 };

/**
 * For migrations: long enough to build an index on a large table, or to wait for another process
 * that builds it; and for a server that has just started, on a busy machine.
 */
export const MIGRATION_TIMEOUTS: DatabaseTimeouts = { connectMs: 30_000, statementMs: 20_000 };

/** For requests: the first operation that hangs ends the request, so the answer takes at most 2 s. */
export const ANSWER_TIMEOUTS: DatabaseTimeouts = { connectMs: 700, statementMs: 1_100 };

/** Schema of our tables, one per namespace, so that tests run side by side in one database. */
export function schemaName(namespace: string): string {
  return namespace === '' ? 'pillole' : `pillole_${namespace.replaceAll(/[^a-z0-9_]/g, '_')}`;
}

/**
 * The server ends a transaction whose client says nothing for so long: a process that is frozen in
 * the middle of one would otherwise keep its rows from its successor until it thaws.
 */
const IDLE_IN_TRANSACTION_MS = 30_000;

/** Settings of a connection to our schema, in a pool or on its own. */
export function connectionConfig(options: Omit<DatabaseOptions, 'log'>): pg.ClientConfig {
  const settings = [
    `-c search_path=${schemaName(options.namespace)}`,
    '-c timezone=UTC',
    `-c idle_in_transaction_session_timeout=${IDLE_IN_TRANSACTION_MS}`,
    ...(options.lazyCommits === true ? ['-c synchronous_commit=off'] : []),
  ];
  const { connectMs, statementMs } = options.timeouts ?? BACKGROUND_TIMEOUTS;
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
 * Opens a plain `pg` pool for a library that sends its own statements. It connects on first use;
 * `end()` closes it.
 */
export function openPgPool(
  options: DatabaseOptions & { readonly connectionsMax: number },
): pg.Pool {
  const pool = new pg.Pool({ ...connectionConfig(options), max: options.connectionsMax });
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection broke'));
  return pool;
}

/**
 * Opens a pool, which connects on first use; `destroy()` closes it. A connection that does not
 * answer in time is discarded, so a hung connection costs one timeout, not one per later statement.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    ...connectionConfig(options),
    max: options.connectionsMax ?? 10,
    idleTimeoutMillis: 30_000,
  });
  // An idle connection that breaks is replaced; the next query shows whether the server is down.
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection broke'));
  // A connection that breaks in use fails its query; without a listener it also ends the process.
  pool.on('connect', (client) => client.on('error', () => {}));
  const connect = async () => {
    try {
      return lend(await pool.connect());
    } catch (error) {
      noteDatabase(error);
      throw error;
    }
  };
  const dialect = new PostgresDialect({ pool: { connect, end: () => pool.end() } });
  dialect.createIntrospector = (db) => new SchemaIntrospector(db, schemaName(options.namespace));
  return new Kysely<Tables>({ dialect });
}

/**
 * Lends a connection of the pool for one transaction or statement. After a timeout the driver still
 * waits for the answer, and every later statement queues behind it. The connection therefore leaves
 * the pool at once, and any later statement on it, e.g. a rollback, fails at once.
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
      noteDependency('postgres', true);
      return result;
    } catch (error) {
      noteDatabase(error);
      if (isAnswer(error)) throw error;
      const failure = error as Error;
      const mayBeKept = verb === 'commit' || (!isInTransaction && !HARMLESS.has(verb));
      // The rollback that follows fails with the same error: that is the one the caller sees.
      lost = mayBeKept && !isUnsent(failure) ? new OutcomeUnknownError(failure) : failure;
      client.release(lost);
      throw lost;
    }
  };
  return {
    // The other overload takes a cursor, which we never open.
    query: query as unknown as PostgresPoolClient['query'],
    release() {
      if (lost === undefined) client.release();
    },
  };
}

/** Notes what an error of the driver says of the server. */
export function noteDatabase(error: unknown): void {
  noteDependency('postgres', isAnswer(error) || !isDatabaseAway(error));
}

/** First keywords of statements that change nothing by themselves. */
const HARMLESS = new Set(['select', 'begin', 'start', 'rollback', 'savepoint', 'release', 'set']);

/**
 * The answer to a change was lost: to a commit, or to a statement that is its own transaction. The
 * server may have applied the change. A lost answer inside a transaction is not such a case:
 * without the commit nothing is applied.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError';

  constructor(cause: Error) {
    super(`The answer was lost; the change may have been applied: ${cause.message}`, { cause });
  }
}

/**
 * Whether the server itself refused the statement. SQLSTATE 57P01 to 57P03 do not count: the server
 * sends them when it closes a connection, e.g. on shutdown during a commit, so they say nothing
 * about the statement in flight. Nor does class 28: the server refuses the connection.
 */
function isAnswer(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(?:57P0[1-3]|28...)$/.test(error.code ?? '');
}

/** Whether the statement was never sent, because the driver knew that the connection was broken. */
function isUnsent({ message }: Error): boolean {
  return /not queryable|connection was closed/i.test(message);
}

/** Whether an error means that a row with this key exists already (SQLSTATE 23505). */
export function isDuplicate(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '23505';
}

/**
 * Whether an error means that PostgreSQL is unavailable: no connection, a lost one, a timeout, a
 * shutdown, exhausted resources (SQLSTATE classes 08, 53, 57), or a connection that is refused for its
 * password (class 28) or its certificate: what the operator corrects while the process tries again.
 */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof OutcomeUnknownError) return true;
  const { code, message = '' } = error as { code?: unknown; message?: string };
  if (typeof code === 'string') {
    return /^(?:08|28|53|57)...$/.test(code) || SYSTEM_CODES.has(code) || TLS_CODE.test(code);
  }
  return DRIVER_MESSAGE.test(message);
}

/** Node's codes for connections that fail or break. Failures of mail servers have other codes. */
const SYSTEM_CODES: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'ENOENT'],
  ...['EAI_AGAIN', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'EADDRNOTAVAIL'],
]);
/** Codes of Node for a certificate that is not accepted. */
const TLS_CODE = /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_)/;
/** Errors of the driver and its pool that have no code. */
const DRIVER_MESSAGE =
  /^(?:Query read timeout|timeout expired|timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Client was closed and is not queryable|Cannot use a pool after calling end)/;
