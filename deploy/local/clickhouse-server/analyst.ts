import { refusal } from './clickhouse-error.ts';
import type { Engine, Statement } from './engine.ts';
import { ANALYST_LIMITS } from './limits.ts';
import { namesIn } from './statement.ts';

const TABLE_FUNCTIONS = new Set([
  ...['numbers', 'numbers_mt', 'zeros', 'zeros_mt', 'generateseries', 'generate_series'],
  ...['values', 'view', 'null', 'primes', 'generaterandom', 'format'],
]);

/** What drivers and people need to find their way; no table that shows queries or logs. */
const SYSTEM_TABLES = new Set([
  ...['one', 'numbers', 'tables', 'columns', 'databases', 'settings', 'functions', 'formats'],
  ...['data_type_families', 'table_functions', 'time_zones', 'build_options', 'completions'],
]);

const STATEMENTS = new Set([
  ...['SelectWithUnionQuery', 'SelectIntersectExceptQuery', 'Explain', 'DescribeQuery'],
  ...['ShowTables', 'ShowColumns', 'ShowCreateTableQuery', 'ShowCreateDatabaseQuery'],
  ...['ShowCreateViewQuery', 'ShowFunctions', 'ShowIndexes', 'ExistsTableQuery'],
  ...['ExistsDatabaseQuery', 'ExistsViewQuery'],
]);

const HARMLESS_SETTING = /^(output_format_\w+|date_time_\w+|session_timezone|join_use_nulls)$/;

/**
 * A statement of the user `analyst`, who reads the tables of the platform within limits, and
 * nothing else of this machine. The engine enforces `readonly=1` and the limits; what readonly lets
 * pass (the function file(), s3(), tables of other people's queries) is refused by a look at the
 * engine's own syntax tree, so that no spelling gets around it.
 * @returns the statement with the limits applied.
 * @throws ClickHouseError when it asks for more than an analyst may have.
 */
export async function asAnalyst(engine: Engine, statement: Statement): Promise<Statement> {
  const limits = new Map<string, string>(
    Object.entries(ANALYST_LIMITS).map(([name, value]) => [name, String(value)]),
  );
  const settings = statement.settings.filter(([name, value]) => {
    const limit = limits.get(name);
    if (limit !== undefined) {
      if (!isLower(value, Number(limit))) throw denied(`Setting ${name} is at most ${limit} here`);
      limits.set(name, value);
      return false;
    }
    if (name === 'readonly' && (value === '1' || value === '2')) return false;
    if (!HARMLESS_SETTING.test(name)) throw denied(`Setting ${name} may not be changed`);
    return true;
  });
  const limited: Statement = {
    ...statement,
    settings: [...settings, ...limits, ['allow_ddl', '0'], ['readonly', '1']],
  };
  if (/^(system|information_schema)$/i.test(statement.database ?? '')) {
    throw denied(`Database ${statement.database} cannot be the default one`);
  }
  refuseNamesInParameters(statement);
  const { readsOnly } = await engine.classify(statement.sql);
  if (!readsOnly) throw denied('Only statements that read');
  const objection =
    objectionToTree(await engine.syntaxTree(limited), engine.tableFunctions) ??
    objectionToText(await engine.canonical(statement.sql));
  if (objection !== undefined) throw denied(objection);
  return limited;
}

/** Says what in a syntax tree an analyst may not do. */
export function objectionToTree(
  tree: string,
  tableFunctions: ReadonlySet<string>,
): string | undefined {
  const lines = tree.split('\n');
  const kind = lines[0]?.split(' ', 1)[0] ?? '';
  if (!STATEMENTS.has(kind)) return `Statement ${kind} is not among those an analyst may use`;
  for (const line of lines) {
    // In a subquery the engine lets them go over the limits, readonly or not.
    if (/^ *Set(?: |$)/.test(line)) return 'SETTINGS stand in the request, not in the statement';
    // A literal's text may look like anything; only these node kinds name something.
    const node = /^ *(Function|TableIdentifier|Identifier) (.+?)(?: \(.*\))?$/.exec(line);
    const name = node?.[2]?.toLowerCase();
    if (node === null || name === undefined) continue;
    if (node[1] === 'Function') {
      const isTableFunction = tableFunctions.has(name) && !TABLE_FUNCTIONS.has(name);
      if (isTableFunction) return `Function ${name} is not allowed`;
    } else if (name.includes('/')) {
      // chdb takes an unknown name for a file's.
      return `Table ${name} is not readable`;
    } else if (name.startsWith('system.') && !SYSTEM_TABLES.has(name.slice('system.'.length))) {
      return `Table ${name} is not readable`;
    }
  }
  return undefined;
}

/**
 * The tree leaves out some places (APPLY(file), the WHERE of SHOW TABLES), the canonical text does
 * not. A column of that name is the price.
 */
export function objectionToText(canonical: string): string | undefined {
  return namesIn(canonical).some((name) => name.toLowerCase() === 'file')
    ? 'Function file is not allowed'
    : undefined;
}

/** A parameter of type Identifier becomes a name only when the statement runs. */
function refuseNamesInParameters({ sql, params }: Statement): void {
  for (const [name, value] of params) {
    if (!/^\w+$/.test(name)) throw denied('Not the name of a parameter');
    const isName = new RegExp(`\\{\\s*${name}\\s*:\\s*Identifier\\s*\\}`).test(sql);
    if (isName && !/^(?!file\b)\w+(\.\w+)?$/i.test(value)) {
      throw denied(`Parameter ${name} is not the name of a table or column`);
    }
  }
}

function isLower(value: string, limit: number): boolean {
  return /^\d+(\.\d+)?$/.test(value) && Number(value) > 0 && Number(value) <= limit;
}

function denied(text: string) {
  return refusal('ACCESS_DENIED', `analyst: ${text}`);
}
