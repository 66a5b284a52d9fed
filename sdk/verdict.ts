import { PilloleError } from './error.ts';
import type { Pill } from './pill.ts';

/** Answer of `/api/market/verify` about one subject. */
export interface Verdict {
  readonly subject: { readonly symbol?: string; readonly id?: string };
  readonly checked_at: string;
  readonly verdict: 'verified' | 'stale' | 'disagrees' | 'outlier' | 'unknown';
  readonly usable: boolean;
  readonly reasons: readonly { readonly code: string; readonly detail?: string }[];
  /** When to ask again; the verdict holds until then. */
  readonly valid_until?: string;
  readonly pill?: Pill | null;
  readonly age_ms?: number;
  readonly [member: string]: unknown;
}

/** Verdicts of several symbols. */
export interface Verdicts {
  readonly data: Readonly<Record<string, Verdict>>;
  readonly [member: string]: unknown;
}

/** Whether one may act on a symbol now. */
export interface Usable {
  /** True only where the platform has verified it, and the verdict still holds. */
  readonly usable: boolean;
  /**
   * `verified`; else the first reason of the verdict (`pill_too_old`, `market_not_open`, …),
   * `verify_unavailable` where the server has no verify, `verdict_expired`, `verdict_malformed`,
   * or the code of the error that stood in the way.
   */
  readonly reason: string;
  /** ms that the verdict holds from now on; 0 when not usable. */
  readonly validForMs: number;
  readonly verdict: Verdict | undefined;
  readonly error: PilloleError | undefined;
}

/** A verdict older than this was not asked for to act on it. */
export const USABLE_TIMEOUT_MS = 3_000;

/**
 * Asks whether one may act on a symbol. Never throws, and never says yes when in doubt.
 * @param ask one attempt at the verdict
 */
export async function askUsable(symbol: string, ask: () => Promise<Verdict>): Promise<Usable> {
  const askedAt = performance.now();
  try {
    const verdict = await ask();
    return judge(symbol, verdict, performance.now() - askedAt);
  } catch (error) {
    if (!(error instanceof PilloleError)) return refuse('verdict_malformed', undefined);
    const isMissing = error.code === 'endpoint_unavailable';
    return { ...refuse(isMissing ? 'verify_unavailable' : error.code, undefined), error };
  }
}

function judge(symbol: string, verdict: Verdict, tookMs: number): Usable {
  const isOfSymbol = verdict?.subject?.symbol === symbol;
  if (!isOfSymbol || typeof verdict.usable !== 'boolean') {
    return refuse('verdict_malformed', undefined);
  }
  const [reason] = verdict.reasons ?? [];
  if (!verdict.usable || verdict.verdict !== 'verified') {
    return refuse(reason?.code ?? verdict.verdict ?? 'unknown', verdict);
  }
  // Both times are the server's, so its clock may differ from ours. The way here counts against it.
  const heldMs = Date.parse(verdict.valid_until ?? '') - Date.parse(verdict.checked_at);
  const validForMs = Math.floor(heldMs - tookMs);
  if (!(validForMs > 0)) return refuse('verdict_expired', verdict);
  return { usable: true, reason: 'verified', validForMs, verdict, error: undefined };
}

function refuse(reason: string, verdict: Verdict | undefined): Usable {
  return { usable: false, reason, validForMs: 0, verdict, error: undefined };
}
