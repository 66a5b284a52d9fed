import { PilloleError } from '../error.ts';
import type { Verdict } from './verdict-types.ts';

/** Whether you may act on a symbol now. */
export interface Usable {
  /** True only if the platform has verified the newest pill and the verdict still holds. */
  readonly usable: boolean;
  /**
   * `verified`; otherwise the first reason of the verdict (`pill_too_old`, `market_not_open`, …),
   * `verify_unavailable` if the server has no verify, `verdict_expired`, `verdict_malformed`, or
   * the code of the error that prevented a verdict.
   */
  readonly reason: string;
  /** ms for which the verdict holds from now on; 0 if not usable. */
  readonly validForMs: number;
  readonly verdict: Verdict | undefined;
  readonly error: PilloleError | undefined;
}

/** A verdict that takes longer than this is too late to act on. */
export const USABLE_TIMEOUT_MS = 3_000;

/**
 * Asks whether you may act on a symbol. Never throws, and answers no when in doubt.
 * @param getVerdict one attempt at the verdict
 */
export async function askUsable(
  symbol: string,
  getVerdict: () => Promise<Verdict>,
): Promise<Usable> {
  const askedAt = performance.now();
  try {
    const verdict = await getVerdict();
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
  // Both times are the server's, so that a wrong local clock does not matter. The time that the
  // request took is subtracted.
  const heldMs = Date.parse(verdict.valid_until ?? '') - Date.parse(verdict.checked_at);
  const validForMs = Math.floor(heldMs - tookMs);
  if (!(validForMs > 0)) return refuse('verdict_expired', verdict);
  return { usable: true, reason: 'verified', validForMs, verdict, error: undefined };
}

function refuse(reason: string, verdict: Verdict | undefined): Usable {
  return { usable: false, reason, validForMs: 0, verdict, error: undefined };
}
