import type { Pill } from '../rest/responses.ts';
import { type ConnectionOptions, connect } from './connect.ts';
import type { ExitName } from './exit-codes.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';
import { PILL_COLUMNS, pillCells, pillLine, printable } from './text-table.ts';

export interface HistoryOptions extends ConnectionOptions {
  readonly from: string;
  readonly to?: string;
  readonly newestFirst?: boolean;
  /** Ends after this many pills. */
  readonly count?: number;
}

/** `pillole history symbols… --from time [--to time]`: the symbols' pills in order time. */
export async function runHistory(
  terminal: Terminal,
  symbols: readonly string[],
  options: HistoryOptions,
): Promise<ExitName> {
  const { stdout, stderr, signal } = terminal;
  const { from, to, count = Number.POSITIVE_INFINITY, json = false, newestFirst } = options;
  if (symbols.includes('*')) throw new UsageError('History by time needs symbols by name.');
  const subject = symbols.length === 1 ? symbols[0]! : symbols;
  const order = newestFirst === true ? 'desc' : undefined;
  const range = connect(terminal, options).history(subject, from, to, order);
  let pills = 0;
  const print = (pill: Pill) =>
    writeLine(stdout, json ? JSON.stringify(pill) : pillLine(pillCells(pill, Date.now())));
  for await (const pill of range) {
    if (pills === 0 && !json) writeLine(stdout, pillLine(PILL_COLUMNS.head));
    await print(pill);
    pills += 1;
    if (pills >= count || signal.aborted) break;
  }
  for (const { symbol, did_you_mean: meant } of range.unknownSymbols) {
    const suggestion = meant === undefined ? '' : ` Perhaps you mean ${meant}.`;
    await writeLine(stderr, printable(`The log has no pill of ${symbol}.${suggestion}`));
  }
  const isAll = pills < count && !signal.aborted;
  if (range.asOf !== undefined && isAll) {
    const { position } = range.asOf;
    writeLine(stderr, `${pills} pills, as of ${position}: tail --resume continues from there.`);
  }
  if (signal.aborted && signal.reason === 'interrupted') return 'interrupted';
  return pills === 0 ? 'no' : 'ok';
}
