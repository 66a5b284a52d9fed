import type { GeneratorState } from '../../../domain/market/quiet/generator-state.ts';
import { type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import type { Facts } from './facts.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { type Reason, type ReasonCode, verdictOf } from './reasons.ts';

const { askAgainMinMs, askAgainMaxMs, askAgainFaultMs, holdsMaxMs, calls } = VERIFY_LIMITS;

const DAY_MS = 86_400_000;

/** Reasons that a recovery ends, at no known time. */
const OF_PARTS: readonly ReasonCode[] = [
  'log_unavailable',
  'view_behind',
  'search_incomplete',
  'spread_history_unavailable',
];

/** The first moment at which the verdict can change, by the clock or by the next expected pill. */
export function validUntil(facts: Facts, reasons: readonly Reason[]): Micros {
  const { now, pill, market } = facts;
  const verdict = verdictOf(reasons);
  const has = (code: ReasonCode) => reasons.some((reason) => reason.code === code);
  if (verdict === 'verified') return ageingOf(facts);
  if (reasons.some(({ code }) => OF_PARTS.includes(code))) return now + askAgainFaultMs * 1000;
  // Nothing known can change these.
  if (has('superseded') || has('venue_unknown')) return now + holdsMaxMs * 1000;
  if (has('id_not_found')) return now + askAgainMaxMs * 1000;
  const usableAt = has('pill_ahead')
    ? pill!.timestamp - VERIFY_LIMITS.aheadMs * 1000
    : Number.POSITIVE_INFINITY;
  const { opensMs, state } = market.now;
  if (state !== 'open' && opensMs !== undefined) return Math.min(opensMs * 1000, usableAt);
  const isSound = verdict === 'disagrees' || verdict === 'outlier';
  return Math.min(expectedPillAt(facts), isSound ? ageingOf(facts) : usableAt);
}

/**
 * When to ask again: most calls of a day are spread over the time for which the market is open on
 * this UTC day, by which quotas count, and a few over the rest.
 */
export function askAgainAt({ now, market }: Facts, holdsUntil: Micros): Micros {
  const { state, opensMs = Number.POSITIVE_INFINITY } = market.now;
  const { openMs } = market;
  if (state === 'open' || state === 'unknown') {
    return Math.max(holdsUntil, now + Math.round(openMs / calls.open) * 1000);
  }
  const spread = now + Math.round((DAY_MS - openMs) / calls.closed) * 1000;
  return Math.max(holdsUntil, Math.min(spread, opensMs * 1000));
}

/** When a sound pill goes stale, if no other one arrives. */
function ageingOf({ now, pill, market, maxAgeMs, generator }: Facts): Micros {
  const tooOld = pill!.timestamp + maxAgeMs * 1000;
  const changes = (market.moment?.next?.at ?? Number.POSITIVE_INFINITY) * 1000;
  return Math.max(now, Math.min(tooOld, changes, silentFrom(generator)));
}

/** When the generator becomes silent, if it sends nothing more. */
function silentFrom({ last_received_at, late_after_ms }: GeneratorState): Micros {
  const last = last_received_at === null ? undefined : parseTimestamp(last_received_at);
  return last?.ok ? last.micros + late_after_ms * 1000 : Number.POSITIVE_INFINITY;
}

/**
 * When the pill is expected that can change the verdict: one cadence after the last one, or as many
 * as the comparison of spreads still lacks. An overdue pill is expected after as much time again as
 * it has been missing.
 */
function expectedPillAt({ now, pill, cadenceMs, spread }: Facts): Micros {
  if (pill === undefined) return now + askAgainMaxMs * 1000;
  const missing = Math.max(1, VERIFY_LIMITS.windowPillsMin - (spread?.n ?? 0));
  const silentMs = (now - pill.received_at) / 1000;
  const dueInMs = missing * (cadenceMs ?? 0) - silentMs;
  const waitMs = dueInMs > 0 ? dueInMs : silentMs;
  return now + Math.round(Math.min(Math.max(waitMs, askAgainMinMs), askAgainMaxMs)) * 1000;
}
