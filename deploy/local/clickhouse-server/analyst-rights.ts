import { refusal } from './clickhouse-error.ts';
import type { Engine, Statement } from './engine.ts';
import { ANALYST_LIMITS } from './limits.ts';
import { namesIn } from './statement.ts';

const TABLE_FUNCTIONS = new Set([
  ...['numbers', 'numbers_mt', 'zeros', 'zeros_mt', 'generateseries', 'generate_series'],
  ...['values', 'view', 'null', 'primes', 'generaterandom', 'format'],
]);

/**
 * Tables that drivers and people need for orientation; none that shows queries or logs. The engine
 * shows only databases, tables and columns that are granted.
 */
const SYSTEM_TABLES = new Set([
  ...['one', 'numbers', 'tables', 'columns', 'databases', 'settings', 'functions', 'formats'],
  ...['data_type_families', 'table_functions', 'time_zones'],
]);

const STATEMENTS = new Set([
  ...['SelectWithUnionQuery', 'SelectIntersectExceptQuery', 'Explain', 'DescribeQuery'],
  ...['ShowTables', 'ShowColumns', 'ShowCreateTableQuery', 'ShowCreateDatabaseQuery'],
  ...['ShowCreateViewQuery', 'ShowFunctions', 'ShowIndexes', 'ExistsTableQuery'],
  ...['ExistsDatabaseQuery', 'ExistsViewQuery'],
]);

/** Kinds of EXPLAIN for which the engine checks the grants of all tables, or reads none. */
const EXPLAIN = /^Explain EXPLAIN( (PLAN|PIPELINE|ESTIMATE|SYNTAX|AST))?(?: \(|$)/;

const HARMLESS_SETTING = /^(output_format_\w+|date_time_\w+|session_timezone|join_use_nulls)$/;

/**
 * Restricts a statement to the user `analyst`, who may read what is granted in
 * deploy/sql/clickhouse/roles/analyst.sql, within limits, and nothing else on this machine. The engine
 * enforces the grants of the role, `readonly=1` and the limits. What they allow (the function file(),
 * tables with other users' queries) is refused on the engine's own syntax tree, so that no spelling
 * evades the check.
 * @returns the statement with the limits applied
 * @throws ClickHouseError when the statement exceeds the rights of an analyst
 */
export async function restrictToAnalyst(engine: Engine, statement: Statement): Promise<Statement> {
  const limits = new Map<string, string>(
    Object.entries(ANALYST_LIMITS).map(([name, value]) => [name, String(value)]),
  );
  const settings = statement.settings.filter(([name, value]) => {
    const limit = limits.get(name);
    if (limit !== undefined) {
      if (!isLower(value, Number(limit)))
        throw denied(`Setting ${name} must be above 0 and at most ${limit}`);
      limits.set(name, value);
      return false;
    }
    if (name === 'readonly' && (value === '1' || value === '2')) return false;
    if (!HARMLESS_SETTING.test(name)) throw denied(`Setting ${name} may not be changed`);
    return true;
  });
  const limited: Statement = {
    ...statement,
    role: 'analyst',
    settings: [...settings, ...limits, ['allow_ddl', '0'], ['readonly', '1']],
  };
  if (/^(system|information_schema)$/i.test(statement.database ?? '')) {
    throw denied(`Database ${statement.database} cannot be the default one`);
  }
  refuseNamesInParameters(statement);
  // First of all the syntax: a typing error is no question of rights.
  const canonical = await engine.canonical(statement.sql);
  const { readsOnly } = await engine.classify(statement.sql);
  if (!readsOnly) throw denied('Only statements that read are allowed');
  const violation =
    violationInTree(await engine.syntaxTree(limited), engine.tableFunctions) ??
    violationInText(canonical);
  if (violation !== undefined) throw denied(violation);
  return limited;
}

/** The first part of a syntax tree that an analyst may not use. */
export function violationInTree(
  tree: string,
  tableFunctions: ReadonlySet<string>,
): string | undefined {
  const lines = tree.split('\n');
  const kind = lines[0]?.split(' ', 1)[0] ?? '';
  if (!STATEMENTS.has(kind)) return `Statement ${kind} is not allowed`;
  if (kind === 'Explain' && !EXPLAIN.test(lines[0] ?? ''))
    return 'EXPLAIN of this kind is not allowed';
  for (const line of lines) {
    // In a subquery the engine lets SETTINGS exceed the limits, even with readonly.
    if (/^ *Set(?: |$)/.test(line)) return 'SETTINGS belong in the request, not in the statement';
    // The text of a literal may look like any node; only these kinds of node hold names.
    const node = /^ *(Function|TableIdentifier|Identifier) (.+)$/.exec(line);
    if (node === null) continue;
    const name = withoutRemarks(node[2]!).toLowerCase();
    if (node[1] === 'Function') {
      const isTableFunction = tableFunctions.has(name) && !TABLE_FUNCTIONS.has(name);
      if (isTableFunction) return `Function ${name} is not allowed`;
    } else if (name.includes('/')) {
      // chdb reads an unknown name as a file name.
      return `Table ${name} is not readable`;
    } else if (name.startsWith('system.') && !SYSTEM_TABLES.has(name.slice('system.'.length))) {
      return `Table ${name} is not readable`;
    }
  }
  return undefined;
}

/**
 * The tree omits some parts (APPLY(file), the WHERE of SHOW TABLES); the canonical text does not. As a
 * side effect, a column named `file` is refused too.
 */
export function violationInText(canonical: string): string | undefined {
  return namesIn(canonical).some((name) => name.toLowerCase() === 'file')
    ? 'Function file is not allowed'
    : undefined;
}

/** The text of a node without `(alias …)` and `(children …)`. */
function withoutRemarks(text: string): string {
  return text.endsWith(')') && text.includes(' (') ? text.slice(0, text.indexOf(' (')) : text;
}

/** Checks parameters of type Identifier, which become names only when the statement runs. */
function refuseNamesInParameters({ sql, params }: Statement): void {
  const named = sql.matchAll(/\{\s*(\w+)\s*:\s*Identifier\s*\}/g);
  const names = new Set(Array.from(named, ([, name]) => name));
  for (const [name, value] of params) {
    if (!/^\w+$/.test(name)) throw denied('Invalid parameter name');
    if (names.has(name) && !/^(?!file\b)\w+(\.\w+)?$/i.test(value)) {
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
