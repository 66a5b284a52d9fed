import type { LatestMany, Pill } from '../rest/responses.ts';
import { type ConnectionOptions, connect } from './connect.ts';
import type { ExitName } from './exit-codes.ts';
import { type Terminal, writeLine } from './terminal.ts';
import { PILL_COLUMNS, pillCells, printable, renderTable } from './text-table.ts';

/** `pillole latest [symbols…]`: the newest pill of each symbol, or of all together. */
export async function runLatest(
  terminal: Terminal,
  symbols: readonly string[],
  options: ConnectionOptions,
): Promise<ExitName> {
  const client = connect(terminal, options);
  const [first] = symbols;
  const answer =
    first === undefined
      ? await client.latest()
      : symbols.length === 1
        ? await client.latest(first)
        : await client.latest(symbols);
  const errors = Object.entries('errors' in answer ? answer.errors : {});
  if (options.json) {
    writeLine(terminal.stdout, JSON.stringify(answer));
  } else {
    const pills = 'errors' in answer ? pillsOf(answer) : [answer.data];
    const rows = pills.map((pill) => pillCells(pill, Date.now()));
    const { head, right } = PILL_COLUMNS;
    if (rows.length > 0) {
      writeLine(terminal.stdout, renderTable(head, rows, { right }).join('\n'));
    }
    for (const [symbol, { code, detail }] of errors) {
      writeLine(terminal.stderr, printable(`${symbol}: ${detail} (${code})`));
    }
  }
  return errors.length === 0 ? 'ok' : 'no';
}

function pillsOf({ data }: LatestMany): Pill[] {
  return Object.values(data);
}
