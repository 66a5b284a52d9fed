import type { Pill } from '../pill.ts';
import { type ConnectionOptions, connect } from './connection.ts';
import type { ExitName } from './exit-codes.ts';
import { PILL_COLUMNS, pillCells, pillLine } from './table.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

export interface HistoryOptions extends ConnectionOptions {
  readonly from: string;
  readonly to?: string;
  /** Pills after which it ends. */
  readonly count?: number;
}

/** `pillole history symbol --from time [--to time]`: its pills in order time, page by page. */
export async function runHistory(
  terminal: Terminal,
  symbol: string,
  options: HistoryOptions,
): Promise<ExitName> {
  const { stdout, stderr, signal } = terminal;
  const { from, to, count = Number.POSITIVE_INFINITY, json = false } = options;
  if (symbol === '*') throw new UsageError('History by time is of one symbol: name it.');
  const range = connect(terminal, options).history(symbol, from, to);
  let pills = 0;
  const show = (pill: Pill) =>
    writeLine(stdout, json ? JSON.stringify(pill) : pillLine(pillCells(pill, Date.now())));
  for await (const pill of range) {
    if (pills === 0 && !json) writeLine(stdout, pillLine(PILL_COLUMNS.head));
    await show(pill);
    pills += 1;
    if (pills >= count || signal.aborted) break;
  }
  const isAll = pills < count && !signal.aborted;
  if (range.asOf !== undefined && isAll) {
    const { position } = range.asOf;
    writeLine(stderr, `${pills} pills, as of ${position}: tail --resume goes on from there.`);
  }
  if (signal.aborted && signal.reason === 'interrupted') return 'interrupted';
  return pills === 0 ? 'no' : 'ok';
}
