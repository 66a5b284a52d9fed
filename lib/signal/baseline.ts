// What a spread is held against, in verdicts and in the outliers of the analytics alike.

/** The last so many pills of its symbol. */
export const BASELINE_PILLS = 1_000;

/** The fewest that tell anything. */
export const BASELINE_PILLS_MIN = 30;

/** From this |robust z| on (rolling-window.ts) a spread is an outlier. */
export const ROBUST_Z_MAX = 4;
