import pg from 'pg';
import { noteDependency } from '../metrics/dependencies.ts';
import { connectionConfig, type DatabaseOptions, noteDatabase } from './database.ts';

export type StatementPool = ReturnType<typeof openStatementPool>;

/**
 * Opens a pool of at most `connectionsMax` for plain SQL statements that are of no use when they come
 * late. It connects on first use.
 * @param options `timeoutMs` applies to a connection, and again to a statement
 */
export function openStatementPool(
  options: DatabaseOptions & { readonly connectionsMax: number; readonly timeoutMs: number },
) {
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
    /**
     * Runs one statement.
     * @throws any database error. A connection whose statement failed or hangs is discarded, so a
     * frozen connection costs one timeout, not one per later statement
     */
    async query<Row extends object>(
      text: string,
      values: readonly unknown[],
    ): Promise<readonly Row[]> {
      // pool.query, unlike connect and release, drops the connection of a failed statement.
      try {
        const { rows } = await pool.query<Row>(text, [...values]);
        noteDependency('postgres', true);
        return rows;
      } catch (error) {
        noteDatabase(error);
        throw error;
      }
    },
    close: () => pool.end(),
  };
}
