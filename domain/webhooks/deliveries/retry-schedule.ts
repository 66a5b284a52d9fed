/** Waits before the second and later attempts, s (Standard Webhooks 1.0, "Retries"). */
export const RETRY_WAITS_S = [
  5,
  5 * 60,
  30 * 60,
  2 * 3_600,
  5 * 3_600,
  10 * 3_600,
  14 * 3_600,
  20 * 3_600,
  24 * 3_600,
] as const;

export const ATTEMPTS_MAX = RETRY_WAITS_S.length + 1;

/** Waits vary by up to this share, so that messages that failed together are retried apart. */
const JITTER = 0.1;

/** An endpoint without any success for this long is disabled: all attempts of a message fit in. */
export const DISABLE_AFTER_S = 76 * 3_600;

/**
 * When a test is tried again: soon, because its owner waits and may not have started the receiver yet.
 * @returns s from now; undefined = never
 */
export function testWaitS(attempts: number, retryAfterS: number | undefined): number | undefined {
  if (attempts >= ATTEMPTS_MAX) return undefined;
  return Math.max(RETRY_WAITS_S[0] * attempts, retryAfterS ?? 0);
}

/**
 * When a message is tried again.
 * @param attempts made so far, from 1
 * @param retryAfterS asked for by the receiver; takes precedence if longer than our wait
 * @param random from 0 to 1
 * @returns s from now; undefined = never: no attempts are left
 */
export function retryWaitS(
  attempts: number,
  retryAfterS: number | undefined,
  random: () => number = Math.random,
): number | undefined {
  const wait = RETRY_WAITS_S[attempts - 1];
  if (wait === undefined) return undefined;
  return Math.max(wait * (1 + JITTER * (2 * random() - 1)), retryAfterS ?? 0);
}
