/**
 * Decimals of computed figures, by kind: finer than any use of them, and coarse enough to cut the
 * noise of binary fractions (0.30000000000000004). Values of pills are never rounded.
 */
export const FIGURE_DECIMALS = {
  /** Statistics of `gross_spread_percent`. */
  spread: 9,
  /** Statistics of `confidence`. */
  confidence: 6,
  /** Shares, rates and correlations, within -1 and 1. */
  share: 6,
  /** Scores in standard deviations. */
  z: 4,
  /** Durations in s; times have microseconds. */
  seconds: 6,
  /** Durations in ms. */
  ms: 3,
} as const;

export type FigureKind = keyof typeof FIGURE_DECIMALS;

/** Rounds a figure to the decimals of its kind. */
export function roundFigure(kind: FigureKind, value: number): number;
export function roundFigure(kind: FigureKind, value: number | null): number | null;
export function roundFigure(kind: FigureKind, value: number | null): number | null {
  return value === null ? null : Number(value.toFixed(FIGURE_DECIMALS[kind]));
}

type Kinds<R> = {
  readonly [Name in keyof R as R[Name] extends number | null ? Name : never]?: FigureKind;
};

/** A copy of a row with the named figures rounded. */
export function roundFigures<R extends object>(row: R, kinds: Kinds<R>): R {
  const rounded = Object.entries<FigureKind>(kinds as Record<string, FigureKind>).map(
    ([name, kind]) => [name, roundFigure(kind, (row as Record<string, number | null>)[name]!)],
  );
  return { ...row, ...Object.fromEntries(rounded) };
}

/** A sentence for the reference. */
export const FIGURES_RULE =
  'Computed figures are rounded: statistics of spreads to nine decimals, of confidence, shares and ' +
  'correlations to six, z to four. Values of pills are exact.';
