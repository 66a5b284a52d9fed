/** How many came within the last second. */
export interface RateWindow {
  count(nowMs: number): void;
  perS(nowMs: number): number;
}

const SLOTS = 10;
const SLOT_MS = 1_000 / SLOTS;

export function createRateWindow(): RateWindow {
  const counts = new Array<number>(SLOTS).fill(0);
  let slot = 0;
  let total = 0;
  const turn = (nowMs: number) => {
    const now = Math.floor(nowMs / SLOT_MS);
    for (let gone = Math.min(now - slot, SLOTS); gone > 0; gone -= 1) {
      const at = (now - gone + 1) % SLOTS;
      total -= counts[at]!;
      counts[at] = 0;
    }
    slot = now;
    return now % SLOTS;
  };
  return {
    count(nowMs) {
      counts[turn(nowMs)]! += 1;
      total += 1;
    },
    perS(nowMs) {
      turn(nowMs);
      return total;
    },
  };
}

/** A token bucket that holds what comes in a second. */
export interface Tokens {
  /** ms until one may be taken; 0 = now. */
  waitMs(perS: number, nowMs: number): number;
  take(perS: number, nowMs: number): void;
}

export function createTokens(): Tokens {
  let tokens = Number.POSITIVE_INFINITY;
  let atMs = 0;
  const fill = (perS: number, nowMs: number) => {
    // At least one: an endpoint with little share of the log must get its messages all the same.
    const burst = Math.max(1, perS);
    tokens = Math.min(burst, tokens + ((nowMs - atMs) / 1_000) * perS);
    atMs = nowMs;
  };
  return {
    waitMs(perS, nowMs) {
      fill(perS, nowMs);
      return tokens >= 1 ? 0 : ((1 - tokens) / perS) * 1_000;
    },
    take(perS, nowMs) {
      fill(perS, nowMs);
      tokens -= 1;
    },
  };
}
