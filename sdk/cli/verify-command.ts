import type {
  MissingVerdict,
  PublishedVerdict,
  Verdict,
  VerdictList,
  Verdicts,
} from '../rest/verdict-types.ts';
import { type ConnectionOptions, connect } from './connect.ts';
import type { ExitName } from './exit-codes.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';
import { formatAge, printable, renderTable } from './text-table.ts';

export interface VerifyOptions extends ConnectionOptions {
  /** Id of the pill to verify instead of the newest one. */
  readonly id?: string;
}

type AnyVerdict = Verdict | PublishedVerdict | MissingVerdict;
type Answer = AnyVerdict | Verdicts | VerdictList;

const HEAD = ['SYMBOL', 'USABLE', 'VERDICT', 'PILL AGE', 'ASK AGAIN', 'REASONS'];

/** `pillole verify [symbols…]`: whether you may act on them now. `ok` only if on all of them. */
export async function runVerify(
  terminal: Terminal,
  symbols: readonly string[],
  options: VerifyOptions,
): Promise<ExitName> {
  const { id } = options;
  const [symbol] = symbols;
  if (symbol === undefined && id === undefined) throw new UsageError('Name a symbol, or use --id.');
  if (symbols.length > 1 && id !== undefined)
    throw new UsageError('--id takes at most one symbol.');
  const client = connect(terminal, options);
  const named = symbols.length > 1 ? symbols : symbol!;
  const subject = id === undefined ? named : { id, ...(symbol === undefined ? {} : { symbol }) };
  const answer: Answer = await client.verify(subject as string);
  const verdicts = verdictsOf(answer, symbols);
  if (options.json) writeLine(terminal.stdout, JSON.stringify(answer));
  else {
    const rows = verdicts.map(([name, verdict, why]) => cells(name, verdict, why));
    if (rows.length > 0) {
      writeLine(terminal.stdout, renderTable(HEAD, rows, { right: [3] }).join('\n'));
    } else writeLine(terminal.stderr, printable(`No symbol has a pill with the id ${id}.`));
    if ('complete' in answer && !answer.complete) {
      const why = answer.reasons.map(({ detail }) => detail).join('; ') || 'there are more pills';
      writeLine(terminal.stderr, printable(`The list is incomplete: ${why}.`));
    }
  }
  // Without any pill there is nothing to act on.
  const isYes = verdicts.length > 0 && verdicts.every(([, verdict]) => verdict?.usable === true);
  return isYes ? 'ok' : 'no';
}

/** The verdict on each requested symbol; without a verdict, why there is none. */
function verdictsOf(
  answer: Answer,
  symbols: readonly string[],
): (readonly [symbol: string, verdict: AnyVerdict | undefined, why?: string | undefined])[] {
  if ('verdict' in answer) return [[answer.subject.symbol, answer]];
  const data: Verdicts['data'] | VerdictList['data'] = answer.data;
  if (isList(data)) return data.map((one) => [one.subject.symbol, one]);
  const errors = 'errors' in answer ? answer.errors : {};
  return symbols.map((symbol) => [symbol, data?.[symbol], errors?.[symbol]?.code]);
}

function isList(data: Verdicts['data'] | VerdictList['data']): data is VerdictList['data'] {
  return Array.isArray(data);
}

function cells(name: string, verdict: AnyVerdict | undefined, why = 'no answer'): string[] {
  if (verdict === undefined) return [name, 'no', '-', '-', '-', why];
  const reasons = verdict.reasons.map(({ code, detail }) =>
    detail === undefined ? code : `${code} (${detail})`,
  );
  const ageMs = 'age_ms' in verdict ? verdict.age_ms : undefined;
  return [
    name,
    verdict.usable ? 'yes' : 'no',
    verdict.verdict,
    ageMs === undefined || ageMs === null ? '-' : formatAge(ageMs),
    verdict.valid_until ?? '-',
    reasons.join('; '),
  ];
}
