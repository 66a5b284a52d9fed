import type { IncomingMessage } from 'node:http';
import { asAnalyst } from './analyst.ts';
import { decoded, readStatement, readUpTo, rejoined, type Spool } from './body.ts';
import { refusal } from './clickhouse-error.ts';
import { type Answer, type Engine, quoteText, type Statement } from './engine.ts';
import { readForm } from './form.ts';
import { RESULT_BYTES_MAX } from './limits.ts';
import type { Queue } from './queue.ts';
import { type Ask, readAsk } from './request.ts';
import { firstWord, type Insert, insertWithRows, trailingFormat } from './statement.ts';

export interface Executor {
  readonly engine: Engine;
  readonly queue: Queue;
  readonly spool: Spool;
}

export interface Executed {
  readonly ask: Ask;
  readonly answer: Answer;
  readonly format: string;
  readonly insertedBytes: number;
}

/** An insert's own text (table, columns, settings) ends within this. */
const INSERT_HEAD_BYTES_MAX = 64 * 1024;
/** They change the state of a connection, and ours end with the statement. */
const STATEFUL = new Set(['SET', 'USE']);

/**
 * From a request to an answer: routes its statement, checks it, gives it a turn at the engine.
 * @throws ClickHouseError with what to answer.
 */
export async function execute(
  executor: Executor,
  request: IncomingMessage,
  url: URL,
  abandoned: AbortSignal,
): Promise<Executed> {
  const chunks = decoded(request, executor.spool, executor.engine.unpack);
  const form = await readForm(request, chunks);
  const ask = readAsk(request, url, form);
  const body = chunks[Symbol.asyncIterator]();
  const isGet = request.method === 'GET';
  // ClickHouse reads the URL's query, a line break, then the body.
  let begin = Buffer.from(ask.query === undefined ? '' : `${ask.query.trimEnd()}\n`);
  let insert = insertIn(begin);
  if (insert === undefined) {
    begin = Buffer.concat([begin, await readUpTo(body, INSERT_HEAD_BYTES_MAX)]);
    insert = insertIn(begin);
  }
  if (insert === undefined) {
    const text = await readStatement(begin, body);
    return executeText(executor, ask, text, isGet, abandoned);
  }
  if (isGet) throw getIsReadonly();
  return executeInsert(executor, ask, insert, begin, body, abandoned);
}

/** Works on latin1, so that one character is one byte and rows may be binary. */
function insertIn(bytes: Buffer): Insert | undefined {
  return insertWithRows(bytes.toString('latin1'));
}

/**
 * The rows go to a file that the engine reads: inline it would cut them at the first blank line
 * and run what follows as a statement (chdb 26.7), which binary rows hold at any place.
 */
async function executeInsert(
  { engine, queue, spool }: Executor,
  ask: Ask,
  insert: Insert,
  begin: Buffer,
  body: AsyncIterator<Buffer>,
  abandoned: AbortSignal,
): Promise<Executed> {
  if (ask.user === 'analyst') throw refusal('ACCESS_DENIED', 'analyst: Only statements that read');
  // The engine's reader of VALUES ends at a semicolon and ignores what follows: say so instead.
  if (insert.format === 'Values') await refuseSeveral(engine, begin.toString('utf8'));
  const rows = await spool.keep(rejoined(begin.subarray(insert.dataAt), body));
  try {
    const from = `FROM INFILE ${quoteText(rows.file)} COMPRESSION 'none'`;
    const text = `${insert.head} ${from} ${insert.settings} FORMAT ${insert.format}`;
    const statement = statementOf(ask, Buffer.from(text, 'latin1').toString('utf8'));
    await refuseSeveral(engine, statement.sql);
    const answer = await queue.run('write', true, abandoned, () => engine.run(statement));
    return { ask, answer, format: ask.format, insertedBytes: rows.bytes };
  } finally {
    await rows.remove();
  }
}

async function executeText(
  { engine, queue }: Executor,
  ask: Ask,
  text: string,
  isGet: boolean,
  abandoned: AbortSignal,
): Promise<Executed> {
  const sql = text.trim();
  if (sql === '') throw refusal('SYNTAX_ERROR', 'Empty query');
  const word = firstWord(sql);
  if (STATEFUL.has(word)) {
    throw refusal(
      'NOT_IMPLEMENTED',
      `${word} is refused: over HTTP settings and the database belong into the URL`,
    );
  }
  const { readsOnly } = await refuseSeveral(engine, sql);
  if (isGet && !readsOnly) throw getIsReadonly();
  const plain = statementOf(ask, sql);
  const isAnalyst = ask.user === 'analyst';
  const lane = isAnalyst ? 'analyst' : readsOnly ? 'read' : 'write';
  const answer = await queue.run(lane, word === 'INSERT', abandoned, async () =>
    engine.run(isAnalyst ? await asAnalyst(engine, plain) : plain),
  );
  return { ask, answer, format: trailingFormat(sql) ?? ask.format, insertedBytes: 0 };
}

function statementOf(ask: Ask, sql: string): Statement {
  const { format, database, params } = ask;
  const isReadonly = ([name]: readonly [string, string]) => name === 'readonly';
  const bounds: [string, string][] =
    ask.user === 'analyst' ? [] : [['max_result_bytes', String(RESULT_BYTES_MAX)]];
  const settings = [
    ...bounds,
    ...ask.settings.filter((setting) => !isReadonly(setting)),
    ...ask.settings.filter(isReadonly),
  ];
  return { sql, format, database, params, settings };
}

async function refuseSeveral(
  engine: Engine,
  sql: string,
): Promise<{ readonly readsOnly: boolean }> {
  const { count, readsOnly } = await engine.classify(sql);
  if (count > 1) throw refusal('SYNTAX_ERROR', 'Multi-statements are not allowed');
  return { readsOnly };
}

function getIsReadonly() {
  return refusal(
    'READONLY',
    'Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly',
  );
}
