import type { Verdict, Verdicts } from '../verdict.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import type { ExitName } from './exit-codes.ts';
import { formatAge, renderTable } from './table.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

export interface VerifyOptions extends ConnectionOptions {
  /** Of the pill that is asked about, instead of the newest one. */
  readonly id?: string;
}

const HEAD = ['SYMBOL', 'USABLE', 'VERDICT', 'PILL AGE', 'ASK AGAIN', 'REASONS'];

/** `pillole verify [symbols…]`: may one act on them now? Exit code 0 only if on all of them. */
export async function runVerify(
  terminal: Terminal,
  symbols: readonly string[],
  options: VerifyOptions,
): Promise<ExitName> {
  const { id } = options;
  const [symbol] = symbols;
  if (symbol === undefined && id === undefined) throw new UsageError('Name a symbol, or --id.');
  if (symbols.length > 1 && id !== undefined) throw new UsageError('--id goes with one symbol.');
  const client = connect(terminal, options);
  const answer: Verdict | Verdicts =
    id !== undefined
      ? await client.verify(symbol === undefined ? { id } : { id, symbol })
      : symbols.length === 1
        ? await client.verify(symbol!)
        : await client.verify(symbols);
  const verdicts = verdictsOf(answer, symbols);
  if (options.json) writeLine(terminal.stdout, JSON.stringify(answer));
  else {
    const rows = verdicts.map(([name, verdict]) => cells(name, verdict));
    writeLine(terminal.stdout, renderTable(HEAD, rows, { right: [3] }).join('\n'));
  }
  return verdicts.every(([, verdict]) => verdict?.usable === true) ? 'ok' : 'no';
}

/** Each that was asked for; without an answer it has no verdict. */
function verdictsOf(
  answer: Verdict | Verdicts,
  symbols: readonly string[],
): (readonly [string, Verdict | undefined])[] {
  if ('verdict' in answer) {
    const { symbol, id } = answer.subject as Verdict['subject'];
    return [[symbol ?? id ?? '', answer as Verdict]];
  }
  const { data } = answer as Verdicts;
  // Of an id alone several symbols may have one.
  if (Array.isArray(data)) return data.map((one: Verdict) => [one.subject.symbol ?? '', one]);
  return symbols.map((symbol) => [symbol, data?.[symbol]]);
}

function cells(name: string, verdict: Verdict | undefined): string[] {
  if (verdict === undefined) return [name, 'no', '-', '-', '-', 'no answer'];
  const reasons = verdict.reasons.map(({ code, detail }) =>
    detail === undefined ? code : `${code} (${detail})`,
  );
  return [
    name,
    verdict.usable ? 'yes' : 'no',
    verdict.verdict,
    verdict.age_ms === undefined ? '-' : formatAge(verdict.age_ms),
    verdict.valid_until ?? '-',
    reasons.join('; '),
  ];
}
