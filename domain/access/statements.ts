import { CompiledQuery } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';

/** How a statement ended, which decides whether it may be sent again. */
type StatementOutcome<Row> =
  | { readonly kind: 'done'; readonly rows: readonly Row[] }
  /** The statement changed nothing: it was never sent, or the server refused it. */
  | { readonly kind: 'undone'; readonly error: Error }
  /** The answer was lost: the statement may have been committed. */
  | { readonly kind: 'unknown'; readonly error: Error };

export type Statements = ReturnType<typeof openStatements>;

/**
 * Runs statements, each in its own transaction, over a pool of their own. After a lost answer the pool is reopened: on a timeout
 * the driver keeps the dead connection, which would block every later statement.
 */
export function openStatements(open: () => Database) {
  let db = open();
  return {
    /** Never rejects. */
    async run<Row>(text: string, parameters: readonly unknown[]): Promise<StatementOutcome<Row>> {
      let sent = false;
      try {
        const { rows } = await db.connection().execute((connection) => {
          sent = true;
          return connection.executeQuery<Row>(CompiledQuery.raw(text, [...parameters]));
        });
        return { kind: 'done', rows };
      } catch (thrown) {
        const error = thrown as Error & { code?: unknown };
        if (!sent || isSqlState(error.code)) return { kind: 'undone', error };
        db.destroy().catch(() => undefined);
        db = open();
        return { kind: 'unknown', error };
      }
    },
    close: () => db.destroy(),
  };
}

/** An SQLSTATE comes from the server, which has rolled back; codes such as EPIPE do not. */
function isSqlState(code: unknown): boolean {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && /[0-9]/.test(code);
}
