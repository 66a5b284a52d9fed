import { createRequire } from 'node:module';
import { Session } from 'chdb';
import { engineError, refusal } from './clickhouse-error.ts';

export interface Statement {
  readonly sql: string;
  /** Of the answer, where the text has no FORMAT. */
  readonly format: string;
  readonly database?: string | undefined;
  /** Applied in order; `readonly` last, since nothing may be set after it. */
  readonly settings: readonly (readonly [string, string])[];
  readonly params: readonly (readonly [string, string])[];
}

export interface Answer {
  readonly bytes: Uint8Array;
  readonly elapsedS: number;
  readonly rowsRead: number;
  readonly bytesRead: number;
}

/** chdb, the ClickHouse engine in this process. */
export interface Engine {
  readonly version: string;
  /** Names of table functions, in lower case. */
  readonly tableFunctions: ReadonlySet<string>;
  run(statement: Statement): Promise<Answer>;
  /** What the engine's parser says: how many statements, and whether they only read. */
  classify(sql: string): Promise<{ readonly count: number; readonly readsOnly: boolean }>;
  /** The syntax tree as indented text; parameters are put in. */
  syntaxTree(statement: Statement): Promise<string>;
  /** The statement as the engine writes it: no comments, no needless quotes or escapes. */
  canonical(sql: string): Promise<string>;
  /** Undoes a compression the engine knows, from file to file (relative to the working folder). */
  unpack(from: string, to: string, method: string): Promise<void>;
  close(): void;
}

/** `chdb_classify_query_n` of libchdb, which the package uses but does not export. */
interface Native {
  DurableClassifyAsync(
    connection: unknown,
    sql: string,
    database: string,
  ): Promise<{ readonly statementCount: number; readonly queryClass: number }>;
}

/** Inserts are one block each (atomic), and answered when they are written. */
const SERVER_SETTINGS = [
  '--async_insert=0',
  '--input_format_parallel_parsing=0',
  '--max_insert_block_size=1000000000',
  '--max_insert_block_size_bytes=0',
  '--min_insert_block_size_rows=1000000000',
  '--min_insert_block_size_bytes=4000000000',
];

const READ_ONLY_CLASS = 0;
const PLAIN = { format: 'TSVRaw', settings: [], params: [] } as const;
/** A small body may unpack to a huge one: it is held whole, up to this. */
const UNPACK_BYTES_MAX = 1024 * 1024 * 1024;

/**
 * Opens the data folder. @throws Error when another process has it.
 *
 * Each statement runs on a connection of its own (0.5 ms): its settings, parameters and database
 * are set there and go with it, and connections run side by side. Parameters are set by
 * `SET param_x`, because chdb's own binding is process-wide: two at a time get each other's values.
 */
export async function openEngine(folder: string): Promise<Engine> {
  const require = createRequire(import.meta.url);
  const fromChdb = createRequire(require.resolve('chdb'));
  const native = (fromChdb('./dist/loader.js') as { loadNative(): Native }).loadNative();
  const open = () => new Session(folder, { connectionArgs: SERVER_SETTINGS });
  const keeper = open();
  const version = (await keeper.queryAsync('SELECT version()', { format: 'TSV' })).text().trim();
  const functions = await keeper.queryAsync('SELECT lower(name) FROM system.table_functions', {
    format: 'TSV',
  });

  async function run(statement: Statement): Promise<Answer> {
    const session = open();
    try {
      for (const sql of preamble(statement)) await session.queryAsync(sql);
      const result = await session.queryAsync(statement.sql, { format: statement.format });
      const { elapsed, rowsRead, bytesRead } = result;
      return { bytes: result.bytes(), elapsedS: elapsed, rowsRead, bytesRead };
    } catch (error) {
      throw engineError(error);
    } finally {
      session.close();
    }
  }

  return {
    version,
    tableFunctions: new Set(functions.text().trim().split('\n')),
    run,
    async classify(sql) {
      const found = await native.DurableClassifyAsync(keeper.connection, sql, 'default');
      return { count: found.statementCount, readsOnly: found.queryClass === READ_ONLY_CLASS };
    },
    async syntaxTree(statement) {
      const answer = await run({
        ...statement,
        sql: `EXPLAIN AST ${statement.sql}`,
        format: 'TSVRaw',
      });
      return Buffer.from(answer.bytes).toString('utf8');
    },
    async canonical(sql) {
      const answer = await run({ ...PLAIN, sql: `SELECT formatQuery(${quoteText(sql)})` });
      return Buffer.from(answer.bytes).toString('utf8');
    },
    async unpack(from, to, method) {
      const source = `file(${quoteText(from)}, 'RawBLOB', 'b String', '${method}')`;
      const target = `file(${quoteText(to)}, 'RawBLOB', 'b String', 'none')`;
      const sql = `INSERT INTO FUNCTION ${target} SELECT b FROM ${source}`;
      const settings: [string, string][] = [['max_memory_usage', String(UNPACK_BYTES_MAX)]];
      await run({ ...PLAIN, sql, settings });
    },
    close: () => keeper.close(),
  };
}

function* preamble(statement: Statement): Generator<string> {
  if (statement.database !== undefined) yield `USE ${quoteName(statement.database)}`;
  const params = statement.params.map(([name, value]) => [`param_${name}`, value] as const);
  for (const [name, value] of [...params, ...statement.settings]) {
    if (!/^\w{1,128}$/.test(name)) {
      throw refusal('BAD_ARGUMENTS', `Not the name of a setting or parameter: ${name}`);
    }
    yield `SET ${name} = ${quoteText(value)}`;
  }
}

/** A string literal. */
export function quoteText(value: string): string {
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

function quoteName(value: string): string {
  return `\`${value.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
}
