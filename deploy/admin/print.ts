/** Writes the result of a command: JSON for programs, lines of `name: value` for people. */
export function print(result: unknown, { json }: { readonly json: boolean }): void {
  const text = json ? JSON.stringify(result, undefined, 2) : linesOf(result);
  process.stdout.write(`${text}\n`);
}

function linesOf(result: unknown): string {
  if (Array.isArray(result)) return result.length === 0 ? '(none)' : result.map(rowOf).join('\n');
  if (!isRecord(result)) return String(result);
  return Object.entries(result)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${textOf(value)}`)
    .join('\n');
}

function rowOf(row: unknown): string {
  return isRecord(row) ? Object.values(row).map(textOf).join('  ') : String(row);
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !(value instanceof Date);
}
