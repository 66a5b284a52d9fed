import pg from 'pg';
import { connectionConfig, type DatabaseOptions } from './database.ts';

/**
 * Connections for a library that brings its own statements. It connects when it is used first;
 * `end()` closes it.
 */
export function openPlainPool(
  options: DatabaseOptions & { readonly connectionsMax: number },
): pg.Pool {
  const pool = new pg.Pool({ ...connectionConfig(options), max: options.connectionsMax });
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection broke'));
  return pool;
}
