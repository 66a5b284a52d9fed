import type { MarketState } from '../../../domain/market/calendars/calendar.ts';
import { agreesWithCalendar } from '../../../domain/market/market-state-labels.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { noPillText } from '../server/known-symbols.ts';
import type { Facts, SubjectPill } from './facts.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { type Reason, type ReasonCode, VERDICTS, type VerdictName, verdictOf } from './reasons.ts';
import { askAgainAt, validUntil } from './verdict-validity.ts';

export interface Judgement {
  readonly verdict: VerdictName;
  readonly reasons: readonly Reason[];
  /** First moment at which the verdict can change. */
  readonly validUntil: Micros;
  /** The same or later, so that asking at these moments fits a day's calls of every tier. */
  readonly askAgainAt: Micros;
  readonly agrees: boolean | null;
  readonly ageMs: number | undefined;
}

/** Judges the facts: lists all reasons; the worst decides the verdict. */
export function judge(facts: Facts): Judgement {
  const { pill, newer, now, market } = facts;
  const agreement =
    pill === undefined ? null : agreesWithCalendar(pill.market_state, market.aroundPill);
  const ageMs = pill === undefined ? undefined : Math.round((now - pill.timestamp) / 1000);
  const reasons = [...facts.faults];
  const add = (code: ReasonCode, detail: string) => void reasons.push({ code, detail });
  if (pill === undefined) {
    if (reasons.length === 0) {
      const { symbol, meant } = facts;
      add('no_pill', noPillText({ symbol, ...(meant && { did_you_mean: meant }) }));
    }
  } else if (newer !== undefined) {
    // Other reasons do not matter: a client would act on the newer pill.
    const cursor = formatCursor(newer.partition, newer.offset);
    reasons.push({ code: 'superseded', detail: `${facts.symbol} has a newer pill`, cursor });
  } else {
    checkTime(facts, pill, ageMs!, add);
    checkMarket(facts, add);
    checkSpread(facts, add);
    if (agreement === false) {
      const detail = `the pill says "${pill.market_state}", the calendar ${stateText(market.atPill!)}`;
      add('market_state_disagrees', detail);
    }
  }
  const holdsUntil = validUntil(facts, reasons);
  return {
    verdict: verdictOf(reasons),
    reasons: sorted(reasons),
    agrees: agreement,
    ageMs,
    validUntil: holdsUntil,
    askAgainAt: askAgainAt(facts, holdsUntil),
  };
}

type AddReason = (code: ReasonCode, detail: string) => void;

function checkTime(facts: Facts, pill: SubjectPill, ageMs: number, add: AddReason): void {
  const { now, maxAgeMs, generator, market } = facts;
  // In microseconds, as `valid_until` has them.
  const age = now - pill.timestamp;
  if (age < -VERIFY_LIMITS.aheadMs * 1000) {
    add('pill_ahead', `${seconds(-ageMs)} ahead of our clock`);
  }
  if (age > maxAgeMs * 1000) {
    add('pill_too_old', `${seconds(ageMs)} old, limit ${seconds(maxAgeMs)}`);
  }
  if (pill.backfill) {
    const lateMs = (pill.received_at - pill.timestamp) / 1000;
    add('pill_backfill', `received ${seconds(lateMs)} after its timestamp`);
  }
  // Outside a session the generator may be silent.
  if (market.now.state === 'open' && generator.state !== 'alive') {
    const silent = generator.age_ms === null ? 'no pill received' : seconds(generator.age_ms);
    add('generator_silent', `${silent}, limit ${seconds(generator.late_after_ms)}`);
  }
}

function checkMarket({ symbol, market, now: nowMicros }: Facts, add: AddReason): void {
  const nowMs = nowMicros / 1000;
  const { venue, now, atPill, aroundPill, moment } = market;
  if (market.basis === 'none') {
    add('venue_unknown', `${symbol} has no venue with a calendar`);
    return;
  }
  if (now.state === 'unknown' || atPill === 'unknown') {
    const what = now.state === 'unknown' ? 'the current time' : 'the time of the pill';
    const end = moment?.calendarUntil;
    add('calendar_ended', `${venue}: the calendar ends on ${end} and does not cover ${what}`);
  }
  if (now.state !== 'open' && now.state !== 'unknown') {
    const { opensMs } = now;
    const until = opensMs === undefined ? '' : ` until ${clock(opensMs, nowMs)}`;
    add('market_not_open', `${venue}: ${stateText(now.state)}${until}`);
  }
  if (atPill !== undefined && atPill !== 'unknown' && !aroundPill.includes('open')) {
    add('pill_outside_session', `${venue}: ${stateText(atPill)} at the time of the pill`);
  }
}

function checkSpread({ spread, isSpreadWhole }: Facts, add: AddReason): void {
  const { windowPillsMin, robustZMax } = VERIFY_LIMITS;
  const n = spread?.n ?? 0;
  if (n < windowPillsMin) {
    const detail = `${n} live pills, at least ${windowPillsMin} are needed`;
    add(isSpreadWhole ? 'spread_history_too_short' : 'spread_history_unavailable', detail);
  } else if (Math.abs(spread!.robustZ) >= robustZMax) {
    const z = Number.isFinite(spread!.robustZ) ? spread!.robustZ.toFixed(1) : 'infinite';
    add('spread_outlier', `robust z ${z}, limit ${robustZMax}`);
  }
}

const HALF_DAY_MS = 43_200_000;

/** Worst first, in the order of verdicts; a closed market comes before ages. */
function sorted(reasons: readonly Reason[]): Reason[] {
  const rank = (reason: Reason) => VERDICTS.indexOf(verdictOf([reason]));
  const isMarket = ({ code }: Reason) => (code === 'market_not_open' ? 0 : 1);
  return [...reasons].sort((a, b) => rank(a) - rank(b) || isMarket(a) - isMarket(b));
}

function stateText(state: MarketState): string {
  return state === 'lunch_break' ? 'lunch break' : state;
}

/** `900 s`, `0.45 s`. */
function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(ms < 10_000 ? 2 : 0))} s`;
}

/** `03:30Z`; with the date if the time is not within half a day. */
function clock(ms: number, nowMs: number): string {
  const text = `${formatTimestamp(ms * 1000).slice(0, 16)}Z`;
  return ms - nowMs < HALF_DAY_MS ? text.slice(11) : text;
}
