/** Bounds of destinations. */
export const DESTINATION_LIMITS = {
  /** Destinations of an account. */
  perAccountMax: 10,
  /** Destinations made within an hour, also if removed since. */
  madePerHourMax: 60,
  nameCharsMax: 100,
  /** Test sends of an account at one process. */
  testsPerMinuteMax: 10,
  testMs: 15_000,
  /** Rows of attempts of one destination, and their age. */
  attemptRowsMax: 10_000,
  attemptDaysMax: 30,
  attemptPageMax: 200,
  attemptPageDefault: 50,
} as const;
