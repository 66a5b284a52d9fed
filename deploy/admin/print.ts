import type { Command } from 'commander';

/** Writes the result of a command: JSON with --json, else lines of `name: value`. */
export function print(result: unknown, command: Command): void {
  const { json } = command.optsWithGlobals<{ readonly json: boolean }>();
  const text = json ? JSON.stringify(result, undefined, 2) : formatText(result);
  process.stdout.write(`${text}\n`);
}

function formatText(result: unknown): string {
  if (Array.isArray(result))
    return result.length === 0 ? '(none)' : result.map(formatRow).join('\n');
  if (!isRecord(result)) return String(result);
  return Object.entries(result)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${formatValue(value)}`)
    .join('\n');
}

function formatRow(row: unknown): string {
  return isRecord(row) ? Object.values(row).map(formatValue).join('  ') : String(row);
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !(value instanceof Date);
}
