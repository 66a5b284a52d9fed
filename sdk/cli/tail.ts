import type { StreamItem } from '../items.ts';
import type { Stream, StreamOptions } from '../stream.ts';
import { type ConnectionOptions, connectStream } from './connection.ts';
import type { ExitName } from './exit-codes.ts';
import { failureJson } from './failure.ts';
import { tellEvents } from './notices.ts';
import { PILL_COLUMNS, pillCells, pillLine, printable } from './table.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

export interface TailOptions extends ConnectionOptions {
  readonly mode: 'all' | 'latest';
  readonly snapshot: boolean;
  readonly backfill?: boolean;
  readonly resume?: string;
  readonly since?: string;
  /** Pills after which it ends; those of snapshots do not count. */
  readonly count?: number;
}

/** `pillole tail symbols…`: pills as they come, gaps among them; what else happens on stderr. */
export async function runTail(
  terminal: Terminal,
  symbols: readonly string[],
  options: TailOptions,
): Promise<ExitName> {
  const { resume, since, count = Number.POSITIVE_INFINITY } = options;
  if (resume !== undefined && since !== undefined) {
    throw new UsageError('Give --resume or --since, not both.');
  }
  const from: StreamOptions['resume'] = since === undefined ? resume : { since };
  const client = await connectStream(terminal, options);
  const { mode, snapshot, backfill = false } = options;
  const stream = client.stream({
    ...{ symbols, mode, snapshot, backfill },
    ...(from === undefined ? {} : { resume: from }),
  });
  const { signal, stdout } = terminal;
  if (signal.aborted) stream.close();
  signal.addEventListener('abort', stream.close);
  tellEvents(terminal, stream, options.json === true);
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
    tellPosition(terminal, stream, options.json === true);
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
  const { symbols, after, until, reason, filled, pills, error } = item;
  const range = `${symbols.join(' ')} after ${after ?? '?'} until ${until ?? '?'} (${reason})`;
  const end = filled ? 'filled' : `NOT FILLED${error === undefined ? '' : `: ${error.message}`}`;
  return [printable(`--- gap: ${range}; ${pills} pills handed over; ${end}`)];
}

function tellPosition({ stdout, stderr }: Terminal, { position }: Stream, isJson: boolean): void {
  if (isJson) writeLine(stdout, JSON.stringify({ type: 'closed', position: position ?? null }));
  else if (position !== undefined) writeLine(stderr, `Go on from here: --resume ${position}`);
}
