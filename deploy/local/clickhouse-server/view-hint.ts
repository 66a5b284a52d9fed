import { ClickHouseError, withHint } from './clickhouse-error.ts';
import type { Engine, Statement } from './engine.ts';
import { namesIn } from './statement.ts';

/** How the engine reports a view without its parameters, or with a parameter missing or malformed. */
const CODES: ReadonlySet<number> = new Set([47, 51, 90, 456, 457]);
/** The comment of a view with parameters ends with an example of its call. */
const CALL = /Call: (?<call>(?<view>\w+)\(.+\))$/;

/**
 * Adds to an error about a view with parameters how the view is called, by the comments of the views
 * that the user may see.
 * @param statement as it was run, with its rights and limits
 */
export async function explainViewCall(
  engine: Engine,
  statement: Statement,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof ClickHouseError) || !CODES.has(error.code)) return error;
  const names = new Set(namesIn(statement.sql));
  const comments =
    "SELECT comment FROM system.tables WHERE database = currentDatabase() AND comment LIKE '%Call: %'";
  const listing = { ...statement, sql: comments, format: 'TSVRaw', params: [] };
  // A limit that the request has lowered may stop the listing, too.
  const listed = await engine.run(listing).catch(() => undefined);
  const calls = Buffer.from(listed?.bytes ?? [])
    .toString('utf8')
    .split('\n')
    .flatMap((comment) => {
      const { view = '', call = '' } = CALL.exec(comment)?.groups ?? {};
      return names.has(view) && isAtFault(view, statement.sql, error.code) ? [call] : [];
    });
  if (calls.length === 0) return error;
  return withHint(error, `The view has parameters, all required: ${calls.join(' or ')}.`);
}

/** Whether a view is read as a table, or its call lacks a parameter. */
function isAtFault(view: string, sql: string, code: number): boolean {
  if (code === 456 || code === 457) return true;
  const database = '([\\w`"]+\\.)?';
  const asTable = `\\b(FROM|JOIN)\\s+${database}[\`"]?${view}\\b(?!\\s*\\()`;
  return new RegExp(asTable, 'i').test(sql);
}
