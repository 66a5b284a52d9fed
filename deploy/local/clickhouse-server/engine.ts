import { createRequire } from 'node:module';
import { Session } from 'chdb';
import { engineError, refusal, withoutScope } from './clickhouse-error.ts';

export interface Statement {
  readonly sql: string;
  /** Format of the result, if the text has no FORMAT. */
  readonly format: string;
  readonly database?: string | undefined;
  /** The rights of the statement; by default those of the owner. */
  readonly role?: 'analyst';
  /** Applied in order; `readonly` is last, because it blocks later settings. */
  readonly settings: readonly (readonly [string, string])[];
  readonly params: readonly (readonly [string, string])[];
}

export interface QueryResult {
  readonly bytes: Uint8Array;
  readonly elapsedS: number;
  readonly rowsRead: number;
  readonly bytesRead: number;
}

/** chdb, the ClickHouse engine in this process. */
export type Engine = Awaited<ReturnType<typeof openEngine>>;

/** Each insert is one block (atomic) and is answered after it is written. */
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
/** Bound of the memory for unpacking: a small body may unpack to a huge one, held as a whole. */
const UNPACK_BYTES_MAX = 1024 * 1024 * 1024;

/**
 * Opens the data folder. @throws Error when another process uses the folder
 * @param accessConfig file of `writeAccessConfig`
 *
 * Each statement runs on a connection of its own (0.5 ms), which holds its settings, parameters and
 * database; connections run side by side. Parameters are set with `SET param_x`, because chdb's own
 * binding is process-wide: concurrent statements would get each other's values.
 */
export async function openEngine(folder: string, accessConfig: string) {
  const native = loadNative();
  const connectionArgs = [...SERVER_SETTINGS, `--config-file=${accessConfig}`];
  const open = () => new Session(folder, { connectionArgs });
  const mainSession = open();
  const version = (await mainSession.queryAsync('SELECT version()', { format: 'TSV' }))
    .text()
    .trim();
  const functions = await mainSession.queryAsync('SELECT lower(name) FROM system.table_functions', {
    format: 'TSV',
  });

  async function run(statement: Statement): Promise<QueryResult> {
    const session = open();
    try {
      for (const sql of preamble(statement)) await session.queryAsync(sql);
      const result = await session.queryAsync(statement.sql, { format: statement.format });
      const { elapsed, rowsRead, bytesRead } = result;
      return { bytes: result.bytes(), elapsedS: elapsed, rowsRead, bytesRead };
    } catch (error) {
      throw engineError(error, statement.role);
    } finally {
      session.close();
    }
  }

  /** Copies a file as one value, which is held in memory. */
  async function recode(...files: readonly [from: [string, string], to: [string, string]]) {
    const [source, target] = files.map(
      ([file, method]) => `file(${quoteText(file)}, 'RawBLOB', 'b String', '${method}')`,
    );
    const sql = `INSERT INTO FUNCTION ${target} SELECT b FROM ${source}`;
    const settings: [string, string][] = [['max_memory_usage', String(UNPACK_BYTES_MAX)]];
    await run({ ...PLAIN, sql, settings });
  }

  const textOf = async (statement: Statement) =>
    Buffer.from((await run(statement)).bytes).toString('utf8');

  return {
    version,
    /** Names of table functions in lower case. */
    tableFunctions: new Set(functions.text().trim().split('\n')),
    run,
    /** Counts the statements and decides whether they only read, by the engine's own parser. */
    async classify(sql: string): Promise<{ readonly count: number; readonly readsOnly: boolean }> {
      const found = await native.DurableClassifyAsync(mainSession.connection, sql, 'default');
      return { count: found.statementCount, readsOnly: found.queryClass === READ_ONLY_CLASS };
    },
    /** The syntax tree as indented text, with parameters substituted. */
    syntaxTree: (statement: Statement): Promise<string> =>
      textOf({ ...statement, sql: `EXPLAIN AST ${statement.sql}`, format: 'TSVRaw' }),
    /**
     * The statement as the engine formats it, without comments, needless quotes and escapes.
     * @throws ClickHouseError SYNTAX_ERROR
     */
    canonical: (sql: string): Promise<string> =>
      textOf({ ...PLAIN, sql: `SELECT formatQuery(${quoteText(sql)})` }).catch((error) => {
        throw withoutScope(error);
      }),
    /** Decompresses from file to file; paths are relative to the working folder. */
    unpack: (from: string, to: string, method: string): Promise<void> =>
      recode([from, method], [to, 'none']),
    /** Compresses from file to file. */
    pack: (from: string, to: string, method: string): Promise<void> =>
      recode([from, 'none'], [to, method]),
    close: (): void => mainSession.close(),
  };
}

/** `chdb_classify_query_n` of libchdb, which the package uses but does not export. */
function loadNative() {
  const require = createRequire(import.meta.url);
  const fromChdb = createRequire(require.resolve('chdb'));
  const loader = fromChdb('./dist/loader.js') as {
    loadNative(): {
      DurableClassifyAsync(
        connection: unknown,
        sql: string,
        database: string,
      ): Promise<{ readonly statementCount: number; readonly queryClass: number }>;
    };
  };
  return loader.loadNative();
}

function* preamble(statement: Statement): Generator<string> {
  if (statement.role !== undefined) yield `SET ROLE ${statement.role}`;
  if (statement.database !== undefined) yield `USE ${quoteName(statement.database)}`;
  const params = statement.params.map(([name, value]) => [`param_${name}`, value] as const);
  for (const [name, value] of [...params, ...statement.settings]) {
    if (!/^\w{1,128}$/.test(name)) {
      throw refusal('BAD_ARGUMENTS', `Invalid setting or parameter name: ${name}`);
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
