import type { Allowance } from './access.ts';

const DAY_S = 86_400;
/** Accounts whose standing is kept; beyond, the one that was met first is forgotten. */
const STANDINGS_MAX = 100_000;
/** An exhausted account is refused from memory for so long: raised counts elsewhere are seen then. */
const SPENT_MS = 500;
/** A look at something older asks again. */
const LOOK_MS = 1_000;

/** A day's window, as told by PostgreSQL's clock. */
export interface DayWindow {
  readonly windowS: number;
  readonly resetS: number;
  /** `YYYY-MM-DD` */
  readonly day: string;
  /** RFC 3339, the next 00:00 UTC. */
  readonly resetsAt: string;
}

/** What this process was told last of daily counts. Times are `performance.now()`. */
export interface Standings {
  told(
    accountId: string,
    told: { readonly used: number; readonly day: string; readonly resetS: number },
    nowMs: number,
  ): void;
  /** The window that an account was told of last; it must have been. */
  window(accountId: string, nowMs: number): DayWindow;
  /** Figures of an account that surely has nothing left: told within the last 500 ms. */
  spent(
    accountId: string,
    limit: number,
    nowMs: number,
  ): { readonly daily: Allowance; readonly used: number; readonly resetsAt: string } | undefined;
  /** What was told is no ground for a refusal any more: calls come back. */
  doubt(accountId: string): void;
  /** What was told; nothing, or of yesterday: the whole limit counts as left. */
  peek(
    accountId: string,
    limit: number,
    nowMs: number,
  ): { readonly daily: Allowance; readonly isOld: boolean };
}

interface Standing {
  used: number;
  day: string;
  resetsAt: string;
  atMs: number;
  resetMs: number;
}

/** Nothing is known yet. */
export function createStandings(): Standings {
  const standings = new Map<string, Standing>();

  return {
    told(accountId, { used, day, resetS }, nowMs) {
      const standing = standings.get(accountId);
      const resetMs = nowMs + resetS * 1_000;
      if (standing === undefined) {
        if (standings.size >= STANDINGS_MAX) standings.delete(standings.keys().next().value!);
        standings.set(accountId, { used, day, resetsAt: dayAfter(day), atMs: nowMs, resetMs });
        return;
      }
      if (standing.day !== day) standing.resetsAt = dayAfter(day);
      standing.used = used;
      standing.day = day;
      standing.atMs = nowMs;
      standing.resetMs = resetMs;
    },
    window(accountId, nowMs) {
      const { day, resetsAt, resetMs } = standings.get(accountId)!;
      return { windowS: DAY_S, resetS: secondsUntil(resetMs, nowMs), day, resetsAt };
    },
    spent(accountId, limit, nowMs) {
      const standing = standings.get(accountId);
      if (standing === undefined || standing.used < limit) return undefined;
      const { atMs, resetMs, used, resetsAt } = standing;
      if (nowMs - atMs >= SPENT_MS || nowMs >= resetMs) return undefined;
      const resetS = secondsUntil(resetMs, nowMs);
      return { daily: { limit, remaining: 0, windowS: DAY_S, resetS }, used, resetsAt };
    },
    doubt(accountId) {
      const standing = standings.get(accountId);
      if (standing !== undefined) standing.atMs = Number.NEGATIVE_INFINITY;
    },
    peek(accountId, limit, nowMs) {
      const standing = standings.get(accountId);
      const isOfToday = standing !== undefined && nowMs < standing.resetMs;
      const used = isOfToday ? standing.used : 0;
      const resetS = isOfToday
        ? secondsUntil(standing.resetMs, nowMs)
        : DAY_S - (Math.floor(Date.now() / 1_000) % DAY_S);
      return {
        daily: { limit, remaining: Math.max(0, limit - used), windowS: DAY_S, resetS },
        isOld: !isOfToday || nowMs - standing.atMs >= LOOK_MS,
      };
    },
  };
}

function secondsUntil(resetMs: number, nowMs: number): number {
  // To the millisecond: 30.000000001 s are not 31.
  return Math.max(1, Math.ceil(Math.round(resetMs - nowMs) / 1_000));
}

function dayAfter(day: string): string {
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + DAY_S * 1_000);
  return `${next.toISOString().slice(0, 10)}T00:00:00Z`;
}
