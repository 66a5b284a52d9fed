import type { Extras } from '../results.ts';
import { type Cell, isWhole } from './cell.ts';
import { median } from './percentiles.ts';
import type { Pattern } from './plan.ts';

/** What is to be reached with so many sockets. */
export const GOALS = {
  sockets: 500,
  /** CPU of the stream process ÷ that of the publish loop, all symbols, by pills a second. */
  ratioMax: { 100: 1, 400: 0.7, 1000: 0.6 } as Readonly<Record<number, number>>,
  /** From the planned send, 20,000 frames a second. */
  latency: {
    ...{ pattern: '2of50', perS: 1_000 },
    ...{ p50Micros: 5_000, p99Micros: 25_000, p999Micros: 100_000 },
  },
  /** p99 of the others while some sockets do not read ÷ while all do. */
  slowP99RatioMax: 1.1,
  idleBytesPerSocketMax: 8 * 1024,
} as const;

/** Both servers at one pattern and rate: CPU seconds per million deliveries. */
export interface Summary {
  readonly pattern: Pattern;
  readonly perS: number;
  /** Medians of the rounds. */
  readonly stream: number;
  readonly loop: number;
  /** Each round's own ratio: their median, least and greatest. */
  readonly ratio: number;
  readonly ratioMin: number;
  readonly ratioMax: number;
}

/** Compares the stream process with the loop beside it, round by round; without one, nothing. */
export function summarise(cells: readonly Cell[]): Summary[] {
  const summaries: Summary[] = [];
  for (const { pattern, perS } of cells.filter((cell) => cell.target === 'loop' && isFirst(cell))) {
    const costs = (target: Cell['target']) =>
      cells
        .filter((cell) => cell.target === target && cell.pattern === pattern && cell.perS === perS)
        .map((cell) => cell.serverSecondsPerMillion ?? Number.NaN);
    const [stream, loop] = [costs('stream'), costs('loop')];
    const ratios = stream.map((cost, round) => cost / loop[round]!);
    summaries.push({
      ...{ pattern, perS, stream: median(stream), loop: median(loop), ratio: median(ratios) },
      ...{ ratioMin: Math.min(...ratios), ratioMax: Math.max(...ratios) },
    });
  }
  return summaries;
}

/** CPU of the publish loop against ours: more is better. */
export function fanoutExtras({ cells }: { readonly cells: readonly Cell[] }): Extras {
  const ratios = summarise(cells).map(({ pattern, perS, ratio }) => {
    const own = cells.filter((cell) => cell.pattern === pattern && cell.perS === perS);
    return {
      name: `publish loop ÷ stream, CPU, ${pattern} at ${perS.toLocaleString('en')}/s`,
      ratio: 1 / ratio,
      valid: own.every((cell) => cell.valid && isWhole(cell)),
    };
  });
  return { ratios };
}

function isFirst({ round }: Cell): boolean {
  return round === 1;
}
