import { CompiledQuery } from 'kysely';
import type { Database } from '../postgres/database.ts';

/** How a statement ended, for those who must know whether it may be sent again. */
export type StatementOutcome<Row> =
  | { readonly kind: 'done'; readonly rows: readonly Row[] }
  /** It changed nothing: it was never sent, or the server itself refused it. */
  | { readonly kind: 'undone'; readonly error: Error }
  /** The answer was lost: it may have been committed. */
  | { readonly kind: 'unknown'; readonly error: Error };

/** Sends statements, each a transaction of its own. */
export interface Statements {
  /** Never rejects. */
  run<Row>(text: string, parameters: readonly unknown[]): Promise<StatementOutcome<Row>>;
  close(): Promise<void>;
}

/**
 * Sends statements to a database of its own. When an answer is lost the database is opened anew:
 * after a time-out the driver leaves the dead connection in its pool, where it would hold up every
 * statement that follows.
 */
export function openStatements(open: () => Database): Statements {
  let db = open();
  return {
    async run<Row>(text: string, parameters: readonly unknown[]) {
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
        db.destroy().catch(ignore);
        db = open();
        return { kind: 'unknown', error };
      }
    },
    close: () => db.destroy(),
  };
}

/** An SQLSTATE comes from the server, which has rolled back; EPIPE and its kind do not. */
function isSqlState(code: unknown): boolean {
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && /[0-9]/.test(code);
}

/** Nobody waits for a database that was given up. */
function ignore(): void {}
