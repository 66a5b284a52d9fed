import pg from 'pg';
import { connectionConfig, type DatabaseOptions } from './database.ts';

export interface QuickPoolOptions extends DatabaseOptions {
  readonly connectionsMax: number;
  /** For a connection, and again for a statement. */
  readonly timeoutMs: number;
}

/** Connections for statements that are of no use when they come late. */
export interface QuickPool {
  /**
   * Runs one statement.
   * @throws what the database says; a connection whose statement failed or hangs is thrown away,
   * so that one frozen connection costs one time-out and not every statement after it.
   */
  query<Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** Opens a pool of at most `connectionsMax`; it connects when it is used first. */
export function openQuickPool(options: QuickPoolOptions): QuickPool {
  const { timeoutMs } = options;
  const pool = new pg.Pool({
    ...connectionConfig(options),
    connectionTimeoutMillis: timeoutMs,
    statement_timeout: timeoutMs,
    query_timeout: timeoutMs,
    max: options.connectionsMax,
    idleTimeoutMillis: 30_000,
  });
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection broke'));
  return {
    async query<Row extends object>(text: string, values: readonly unknown[]) {
      // pool.query, unlike connect and release, drops the connection of a failed statement.
      return (await pool.query<Row>(text, [...values])).rows;
    },
    close: () => pool.end(),
  };
}
