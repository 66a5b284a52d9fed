/** How something of ours does against its yardstick in the same run; more is better. */
export interface Ratio {
  /** Says both, and at what rate. The same from run to run. */
  readonly name: string;
  readonly ratio: number;
  /** False where the run it is of proves nothing: load sent too late, answers that failed. */
  readonly valid: boolean;
}

/** The ratios that a change is judged by: `benchmarks/results/baseline.json`. */
export type Baseline = Readonly<Record<string, BaselineOfBenchmark>>;

export interface BaselineOfBenchmark {
  readonly at: string;
  /** On which machine, with which commit. */
  readonly machine: object;
  readonly ratios: Readonly<Record<string, number>>;
}

/** What of a result file is compared. */
export interface ComparedResult {
  readonly benchmark: string;
  readonly at: string;
  readonly machine: { readonly commit?: string | null };
  readonly ratios: readonly Ratio[];
}
