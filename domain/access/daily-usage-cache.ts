const DAY_S = 86_400;
/** Accounts that are cached; beyond that, the oldest account is evicted. */
const ACCOUNTS_MAX = 100_000;
/** An exhausted account is refused from the cache for this long; then a raised limit is noticed. */
const EXHAUSTED_MS = 500;
/** `peek` reports an older count as old. */
const PEEK_MS = 1_000;

/** A UTC day by PostgreSQL's clock. */
export interface DayWindow {
  readonly windowS: number;
  readonly resetS: number;
  /** `YYYY-MM-DD` */
  readonly day: string;
  /** RFC 3339, the next 00:00 UTC. */
  readonly resetsAt: string;
}

/** The daily counts that PostgreSQL last reported to this process. `nowMs` is `performance.now()`. */
export function createDailyUsageCache() {
  const usages = new Map<
    string,
    { used: number; day: string; resetsAt: string; atMs: number; resetMs: number }
  >();

  return {
    record(
      accountId: string,
      {
        used,
        day,
        resetS,
      }: { readonly used: number; readonly day: string; readonly resetS: number },
      nowMs: number,
    ): void {
      const usage = usages.get(accountId);
      const resetsAt = usage?.day === day ? usage.resetsAt : dayAfter(day);
      const next = { used, day, resetsAt, atMs: nowMs, resetMs: nowMs + resetS * 1_000 };
      if (usage !== undefined) Object.assign(usage, next);
      else {
        if (usages.size >= ACCOUNTS_MAX) usages.delete(usages.keys().next().value!);
        usages.set(accountId, next);
      }
    },
    /** The last reported window of an account, which must have been recorded. */
    window(accountId: string, nowMs: number): DayWindow {
      const { day, resetsAt, resetMs } = usages.get(accountId)!;
      return { windowS: DAY_S, resetS: secondsUntil(resetMs, nowMs), day, resetsAt };
    },
    /** The figures of an account whose quota was used up within the last 500 ms, else undefined. */
    exhausted(accountId: string, limit: number, nowMs: number) {
      const usage = usages.get(accountId);
      if (usage === undefined || usage.used < limit) return undefined;
      const { atMs, resetMs, used, resetsAt } = usage;
      if (nowMs - atMs >= EXHAUSTED_MS || nowMs >= resetMs) return undefined;
      const resetS = secondsUntil(resetMs, nowMs);
      return { daily: { limit, remaining: 0, windowS: DAY_S, resetS }, used, resetsAt };
    },
    /** The recorded count no longer justifies a refusal, because calls are being given back. */
    expire(accountId: string): void {
      const usage = usages.get(accountId);
      if (usage !== undefined) usage.atMs = Number.NEGATIVE_INFINITY;
    },
    /** The recorded count; if there is none of today, the whole limit counts as left. */
    peek(accountId: string, limit: number, nowMs: number) {
      const usage = usages.get(accountId);
      const isOfToday = usage !== undefined && nowMs < usage.resetMs;
      const used = isOfToday ? usage.used : 0;
      const resetS = isOfToday
        ? secondsUntil(usage.resetMs, nowMs)
        : DAY_S - (Math.floor(Date.now() / 1_000) % DAY_S);
      return {
        daily: { limit, remaining: Math.max(0, limit - used), windowS: DAY_S, resetS },
        isOld: !isOfToday || nowMs - usage.atMs >= PEEK_MS,
      };
    },
  };
}

function secondsUntil(resetMs: number, nowMs: number): number {
  // Rounded to the millisecond first, so that 30.000000001 s do not become 31.
  return Math.max(1, Math.ceil(Math.round(resetMs - nowMs) / 1_000));
}

function dayAfter(day: string): string {
  const next = new Date(Date.parse(`${day}T00:00:00.000000Z`) + DAY_S * 1_000);
  return `${next.toISOString().slice(0, 10)}T00:00:00.000000Z`;
}
