import type { IncomingMessage } from 'node:http';
import { restrictToAnalyst } from './analyst-rights.ts';
import { authenticate, type Passwords } from './authentication.ts';
import { concatenate, decoded, readStatement, readUpTo, type Spool } from './body.ts';
import { refusal } from './clickhouse-error.ts';
import { type Engine, quoteText, type Statement } from './engine.ts';
import { readForm } from './form.ts';
import { RESULT_BYTES_MAX } from './limits.ts';
import { type QueryRequest, readQueryRequest } from './query-request.ts';
import { firstWord, type Insert, insertWithRows, trailingFormat } from './statement.ts';
import type { StatementQueues } from './statement-queues.ts';
import { explainViewCall } from './view-hint.ts';

export interface Executor {
  readonly engine: Engine;
  readonly queues: StatementQueues;
  readonly spool: Spool;
  readonly passwords: Passwords;
}

export type Executed = Awaited<ReturnType<typeof executeText>>;

/** Bound of an insert's text (table, columns, settings) before the rows. */
const INSERT_HEAD_BYTES_MAX = 64 * 1024;
/** Statements that change a connection, which here ends with each statement. */
const STATEFUL = new Set(['SET', 'USE']);

/**
 * Executes the statement of an HTTP request: routes it, checks it, and runs it in its queue.
 * @param abandoned aborted when the client has gone
 * @throws ClickHouseError with the answer to the client
 */
export async function execute(
  executor: Executor,
  request: IncomingMessage,
  url: URL,
  abandoned: AbortSignal,
): Promise<Executed> {
  const user = authenticate(request, url, executor.passwords);
  const chunks = decoded(request, executor.spool, executor.engine.unpack);
  const form = await readForm(request, chunks);
  const query = readQueryRequest(request, url, form, user);
  const body = chunks[Symbol.asyncIterator]();
  const isGet = request.method === 'GET';
  // ClickHouse reads the query of the URL, a line break, and then the body.
  let begin = Buffer.from(query.query === undefined ? '' : `${query.query.trimEnd()}\n`);
  let insert = insertIn(begin);
  if (insert === undefined) {
    begin = Buffer.concat([begin, await readUpTo(body, INSERT_HEAD_BYTES_MAX)]);
    insert = insertIn(begin);
  }
  if (insert === undefined) {
    const text = await readStatement(begin, body);
    return executeText(executor, query, text, isGet, abandoned);
  }
  if (isGet) throw getIsReadonly();
  return executeInsert(executor, query, insert, begin, body, abandoned);
}

/** Uses latin1, in which a character is a byte, because rows may be binary. */
function insertIn(bytes: Buffer): Insert | undefined {
  return insertWithRows(bytes.toString('latin1'));
}

/**
 * The engine reads the rows from a file: inline rows would end at the first blank line and the rest
 * would run as a statement (chdb 26.7), and binary rows may contain a blank line anywhere.
 */
async function executeInsert(
  { engine, queues, spool }: Executor,
  request: QueryRequest,
  insert: Insert,
  begin: Buffer,
  body: AsyncIterator<Buffer>,
  abandoned: AbortSignal,
): Promise<Executed> {
  if (request.user === 'analyst')
    throw refusal('ACCESS_DENIED', 'analyst: Only statements that read are allowed');
  // The engine stops reading VALUES at a semicolon and ignores the rest: refuse instead.
  if (insert.format === 'Values') await refuseMultiple(engine, begin.toString('utf8'));
  const rows = await spool.write(concatenate(begin.subarray(insert.dataAt), body));
  try {
    const from = `FROM INFILE ${quoteText(rows.file)} COMPRESSION 'none'`;
    const text = `${insert.head} ${from} ${insert.settings} FORMAT ${insert.format}`;
    const statement = statementOf(request, Buffer.from(text, 'latin1').toString('utf8'));
    await refuseMultiple(engine, statement.sql);
    const result = await queues.run('write', true, abandoned, () => engine.run(statement));
    return { request, result, format: request.format, insertedBytes: rows.bytes };
  } finally {
    await rows.remove();
  }
}

async function executeText(
  { engine, queues }: Executor,
  request: QueryRequest,
  text: string,
  isGet: boolean,
  abandoned: AbortSignal,
) {
  const sql = text.trim();
  if (sql === '') throw refusal('SYNTAX_ERROR', 'Empty query');
  const word = firstWord(sql);
  if (STATEFUL.has(word)) {
    throw refusal(
      'NOT_IMPLEMENTED',
      `${word} is refused: over HTTP, settings and the database belong in the URL`,
    );
  }
  const { readsOnly } = await refuseMultiple(engine, sql);
  if (isGet && !readsOnly) throw getIsReadonly();
  const plain = statementOf(request, sql);
  const isAnalyst = request.user === 'analyst';
  const readQueue = isExport(request) ? 'export' : 'read';
  const queue = isAnalyst ? 'analyst' : readsOnly ? readQueue : 'write';
  const result = await queues.run(queue, word === 'INSERT', abandoned, async () => {
    const statement = isAnalyst ? await restrictToAnalyst(engine, plain) : plain;
    return engine.run(statement).catch(async (error) => {
      throw await explainViewCall(engine, statement, error);
    });
  });
  return { request, result, format: trailingFormat(sql) ?? request.format, insertedBytes: 0 };
}

/** ClickHouse's setting for the scheduling of workloads names the statements of exports. */
function isExport({ settings }: QueryRequest): boolean {
  return settings.some(([name, value]) => name === 'workload' && value === 'export');
}

function statementOf(request: QueryRequest, sql: string): Statement {
  const { format, database, params } = request;
  const isReadonly = ([name]: readonly [string, string]) => name === 'readonly';
  const bounds: [string, string][] =
    request.user === 'analyst' ? [] : [['max_result_bytes', String(RESULT_BYTES_MAX)]];
  const settings = [
    ...bounds,
    ...request.settings.filter((setting) => !isReadonly(setting)),
    ...request.settings.filter(isReadonly),
  ];
  return { sql, format, database, params, settings };
}

async function refuseMultiple(engine: Engine, sql: string): ReturnType<Engine['classify']> {
  const found = await engine.classify(sql);
  if (found.count > 1) throw refusal('SYNTAX_ERROR', 'Multi-statements are not allowed');
  return found;
}

function getIsReadonly() {
  return refusal(
    'READONLY',
    'Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly',
  );
}
