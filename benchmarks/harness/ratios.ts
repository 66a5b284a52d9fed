/** How a part of the platform performs against its reference in the same run; more is better. */
export interface Ratio {
  /** Names both sides and the rate; it stays the same from run to run. */
  readonly name: string;
  readonly ratio: number;
  /** False where the run is inconclusive: the load was sent too late, or answers failed. */
  readonly valid: boolean;
}

/** The part of a result file that is compared. */
export interface ComparedResult {
  readonly benchmark: string;
  readonly at: string;
  readonly machine: { readonly commit?: string | null };
  readonly ratios: readonly Ratio[];
}

/** The ratios that a change is judged by, for each benchmark: `benchmarks/results/baseline.json`. */
export type Baseline = Readonly<
  Record<
    string,
    Pick<ComparedResult, 'at' | 'machine'> & { readonly ratios: Readonly<Record<string, number>> }
  >
>;

/** The middle value; the mean of both where there are two. NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (Number.isInteger(middle)) return (sorted[middle - 1]! + sorted[middle]!) / 2;
  return sorted[Math.floor(middle)]!;
}

/**
 * The median of a target's figure, and its ratio to the figure of the reference in the same round:
 * the median, least and greatest of the rounds.
 */
export function compareRounds<Cell extends { readonly round: number }>(
  own: readonly Cell[],
  reference: readonly Cell[],
  figure: (cell: Cell) => number,
) {
  const ratios = own.map((cell) => {
    const other = reference.find(({ round }) => round === cell.round);
    return figure(cell) / (other === undefined ? Number.NaN : figure(other));
  });
  return {
    median: median(own.map(figure)),
    ratio: median(ratios),
    ratioMin: Math.min(...ratios),
    ratioMax: Math.max(...ratios),
  };
}
