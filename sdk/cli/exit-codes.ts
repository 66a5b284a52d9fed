import type { PilloleError } from '../error.ts';

/** Exit codes of the command line, as `pillole --help` lists them. Never renumbered. */
export const EXIT_CODES = {
  ok: { code: 0, meaning: 'Done.' },
  failed: { code: 1, meaning: 'Failed for any other reason.' },
  usage: { code: 2, meaning: 'The command line, the key or an address is wrong.' },
  refused: { code: 3, meaning: 'The platform refused the key, the plan or a symbol.' },
  limit: { code: 4, meaning: 'A limit was reached: rate, quota or connections.' },
  away: { code: 5, meaning: 'The platform cannot be reached, or lacks the endpoint.' },
  no: { code: 6, meaning: 'The answer is no: not usable, or a symbol has no pill.' },
  gap: { code: 7, meaning: 'tail ended, and pills are missing: see the gaps in its output.' },
  interrupted: { code: 130, meaning: 'Ended by Ctrl-C or SIGTERM.' },
} as const satisfies Readonly<Record<string, { readonly code: number; readonly meaning: string }>>;

export type ExitName = keyof typeof EXIT_CODES;

const LIMITS: ReadonlySet<string> = new Set(['connection_limit', 'slow_consumer']);
const AWAY: ReadonlySet<string> = new Set([
  ...['network', 'timeout', 'endpoint_unavailable', 'not_pillole'],
]);
const USAGE: ReadonlySet<string> = new Set(['not_configured', 'no_symbols']);

/** The exit code of an error of the client. */
export function exitOf({ code, status = 0, closeCode = 0 }: PilloleError): ExitName {
  if (USAGE.has(code) || status === 400) return 'usage';
  if (status === 429 || LIMITS.has(code)) return 'limit';
  if (code === 'no_pill') return 'no';
  if (AWAY.has(code) || status >= 500 || (closeCode >= 1000 && closeCode < 4500)) return 'away';
  if (status >= 400 || closeCode >= 4500 || code.startsWith('symbol_')) return 'refused';
  return 'failed';
}

/** The table of exit codes at the end of `--help`. */
export function exitHelp(): string {
  const rows = Object.values(EXIT_CODES).map(
    ({ code, meaning }) => `  ${String(code).padEnd(4)} ${meaning}`,
  );
  return ['', 'Exit codes:', ...rows].join('\n');
}
