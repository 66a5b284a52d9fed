import type { Stream, StreamItem, StreamOptions } from '../stream/stream-types.ts';
import { type ConnectionOptions, connectStream } from './connect.ts';
import { failureJson } from './error-report.ts';
import type { ExitName } from './exit-codes.ts';
import { printEvents } from './stream-events.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';
import { PILL_COLUMNS, pillCells, pillLine, printable } from './text-table.ts';

export interface TailOptions extends ConnectionOptions {
  readonly mode: 'all' | 'latest';
  readonly snapshot: boolean;
  readonly backfill?: boolean;
  readonly resume?: string;
  readonly since?: string;
  /** Streams the other symbols when the platform refuses some. */
  readonly skipRefused?: boolean;
  /** Ends after this many pills; pills of snapshots do not count. */
  readonly count?: number;
}

/** `pillole tail symbols…`: pills and gaps as they come on stdout, other events on stderr. */
export async function runTail(
  terminal: Terminal,
  symbols: readonly string[],
  options: TailOptions,
): Promise<ExitName> {
  const { resume, since, count = Number.POSITIVE_INFINITY } = options;
  if (resume !== undefined && since !== undefined) {
    throw new UsageError('Use --resume or --since, not both.');
  }
  const from: StreamOptions['resume'] = since === undefined ? resume : { since };
  const client = await connectStream(terminal, options);
  const { mode, snapshot, backfill = false } = options;
  const stream = client.stream({
    symbols,
    mode,
    snapshot,
    backfill,
    refusedSymbols: options.skipRefused === true ? 'deliver' : 'throw',
    ...(from === undefined ? {} : { resume: from }),
  });
  const { signal, stdout } = terminal;
  if (signal.aborted) stream.close();
  signal.addEventListener('abort', stream.close);
  printEvents(terminal, stream, options.json === true);
  if (!options.json) writeLine(stdout, pillLine(PILL_COLUMNS.head));

  let pills = 0;
  let unfilled = 0;
  try {
    for await (const item of stream) {
      const lines = options.json ? [itemJson(item)] : itemLines(item, Date.now());
      for (const line of lines) await writeLine(stdout, line);
      if (item.type === 'gap' && !item.filled) unfilled += 1;
      if (item.type === 'pill') pills += 1;
      if (pills >= count) break;
    }
  } finally {
    signal.removeEventListener('abort', stream.close);
    printPosition(terminal, stream, options.json === true);
  }
  if (unfilled > 0) return 'gap';
  return signal.aborted && signal.reason === 'interrupted' ? 'interrupted' : 'ok';
}

function itemJson(item: StreamItem): string {
  if (item.type !== 'gap' || item.error === undefined) return JSON.stringify(item);
  return JSON.stringify({ ...item, error: failureJson(item.error) });
}

function itemLines(item: StreamItem, nowMs: number): string[] {
  if (item.type === 'pill') return [pillLine(pillCells(item, nowMs))];
  if (item.type === 'snapshot') {
    return item.pills.map((pill) => {
      const cells = pillCells(pill, nowMs);
      return pillLine([...cells.slice(0, -1), `snapshot ${cells.at(-1)}`.trimEnd()]);
    });
  }
  if (item.type === 'refused') return [printable(`--- refused: ${item.symbol} (${item.code})`)];
  const { symbols, after, until, reason, filled, pills, error } = item;
  const range = `${symbols.join(' ')} after ${after ?? '?'} until ${until ?? '?'} (${reason})`;
  const end = filled ? 'filled' : `NOT FILLED${error === undefined ? '' : `: ${error.message}`}`;
  return [printable(`--- gap: ${range}; ${pills} pills delivered; ${end}`)];
}

function printPosition({ stdout, stderr }: Terminal, { position }: Stream, isJson: boolean): void {
  if (isJson) writeLine(stdout, JSON.stringify({ type: 'closed', position: position ?? null }));
  else if (position !== undefined) writeLine(stderr, `Continue from here: --resume ${position}`);
}
