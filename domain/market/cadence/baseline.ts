// The baseline with which a spread is compared, in verdicts and in the outliers of analytics.

/** Number of the symbol's last pills in the baseline. */
export const BASELINE_PILLS = 1_000;

/** With fewer pills, the baseline is not meaningful. */
export const BASELINE_PILLS_MIN = 30;

/** A spread whose |robust z| (rolling-window.ts) reaches this value is an outlier. */
export const ROBUST_Z_MAX = 4;
