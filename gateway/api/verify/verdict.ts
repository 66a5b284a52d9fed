import type { MarketState } from '../../../lib/calendar/calendar.ts';
import type { GeneratorState } from '../../../lib/signal/generator.ts';
import type { Quiet } from '../../../lib/signal/silence.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp, type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import { agrees } from './labels.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { MarketFacts } from './market.ts';
import { type Reason, type ReasonCode, VERDICTS, type VerdictName, verdictOf } from './reasons.ts';
import type { SpreadFigures } from './spread.ts';

/** A pill that is weighed. */
export interface WeighedPill {
  readonly partition: number;
  readonly offset: number;
  readonly id: string;
  readonly timestamp: Micros;
  readonly symbol: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
  readonly received_at: Micros;
  readonly backfill: boolean;
}

/** All that a verdict follows from: it reads no clock and asks nobody. */
export interface Facts {
  readonly now: Micros;
  readonly symbol: string;
  /** Parts that are away, and what could not be searched. */
  readonly faults: readonly Reason[];
  /** Undefined: there is none. */
  readonly pill: WeighedPill | undefined;
  /** The newest pill of the symbol, where that is another one. */
  readonly newer: Pick<WeighedPill, 'partition' | 'offset'> | undefined;
  readonly market: MarketFacts;
  /** Median of the symbol's last intervals; undefined where it has none. */
  readonly cadenceMs: number | undefined;
  readonly maxAgeMs: number;
  readonly generator: GeneratorState;
  readonly quiet: Quiet | undefined;
  /** Undefined: its history cannot be read, or there is no pill. */
  readonly spread: SpreadFigures | undefined;
  /** Whether those are all the pills that the symbol has, or as many as are looked at. */
  readonly isSpreadWhole: boolean;
}

export interface Judgement {
  readonly verdict: VerdictName;
  readonly reasons: readonly Reason[];
  readonly validUntil: Micros;
  readonly agrees: boolean | null;
  readonly ageMs: number | undefined;
}

/** Weighs the facts. All that stands against the pill is listed; the worst is the verdict. */
export function judge(facts: Facts): Judgement {
  const { pill, newer, now, market } = facts;
  const agreement = pill === undefined ? null : agrees(pill.market_state, market.aroundPill);
  const ageMs = pill === undefined ? undefined : Math.round((now - pill.timestamp) / 1000);
  const reasons = [...facts.faults];
  const against = (code: ReasonCode, detail: string) => void reasons.push({ code, detail });
  if (pill === undefined) {
    if (reasons.length === 0) against('no_pill', `No pill of ${facts.symbol} was ever received.`);
  } else if (newer !== undefined) {
    // What else stands against it is beside the point: one would act on the newer one.
    const cursor = formatCursor(newer.partition, newer.offset);
    reasons.push({ code: 'superseded', detail: `${facts.symbol} has a newer pill`, cursor });
  } else {
    weighTime(facts, pill, ageMs!, against);
    weighMarket(facts, against);
    weighSpread(facts, against);
    if (agreement === false) {
      const detail = `the pill says "${pill.market_state}", the calendar ${told(market.atPill!)}`;
      against('market_state_disagrees', detail);
    }
  }
  const verdict = verdictOf(reasons);
  return {
    ...{ verdict, reasons: sorted(reasons), agrees: agreement, ageMs },
    validUntil: validUntil(facts, verdict),
  };
}

type Against = (code: ReasonCode, detail: string) => void;

function weighTime(facts: Facts, pill: WeighedPill, ageMs: number, against: Against): void {
  const { maxAgeMs, generator, market } = facts;
  if (ageMs < -VERIFY_LIMITS.aheadMs)
    against('pill_ahead', `${seconds(-ageMs)} ahead of our clock`);
  if (ageMs > maxAgeMs) {
    against('pill_too_old', `${seconds(ageMs)} old, limit ${seconds(maxAgeMs)}`);
  }
  if (pill.backfill) {
    const lateMs = (pill.received_at - pill.timestamp) / 1000;
    against('pill_backfill', `received ${seconds(lateMs)} after its timestamp`);
  }
  // Out of a session it may rest.
  if (market.now.state === 'open' && generator.state !== 'alive') {
    const silent = generator.age_ms === null ? 'nothing was heard' : seconds(generator.age_ms);
    against('generator_silent', `${silent}, limit ${seconds(generator.late_after_ms)}`);
  }
}

function weighMarket({ symbol, market, now: nowMicros }: Facts, against: Against): void {
  const nowMs = nowMicros / 1000;
  const { venue, now, atPill, aroundPill, moment } = market;
  if (market.basis === 'none') {
    against('venue_unknown', `${symbol} has no venue with a calendar`);
    return;
  }
  if (now.state === 'unknown' || atPill === 'unknown') {
    const what = now.state === 'unknown' ? 'now' : 'the time of the pill';
    against(
      'calendar_ended',
      `${venue}: ${what} is not in it; it ends on ${moment?.calendarUntil}`,
    );
  }
  if (now.state !== 'open' && now.state !== 'unknown') {
    const { opensMs } = now;
    const until = opensMs === undefined ? '' : ` until ${clock(opensMs, nowMs)}`;
    against('market_not_open', `${venue}: ${told(now.state)}${until}`);
  }
  if (atPill !== undefined && atPill !== 'unknown' && !aroundPill.includes('open')) {
    against('pill_outside_session', `${venue}: ${told(atPill)} at the time of the pill`);
  }
}

function weighSpread({ spread, isSpreadWhole }: Facts, against: Against): void {
  const { windowPillsMin, robustZMax } = VERIFY_LIMITS;
  const n = spread?.n ?? 0;
  if (n < windowPillsMin) {
    const detail = `${n} live pills, at least ${windowPillsMin} are needed`;
    against(isSpreadWhole ? 'spread_history_short' : 'spread_history_unavailable', detail);
  } else if (Math.abs(spread!.robustZ) >= robustZMax) {
    const z = Number.isFinite(spread!.robustZ) ? spread!.robustZ.toFixed(1) : 'infinite';
    against('spread_outlier', `robust z ${z}, limit ${robustZMax}`);
  }
}

/** When the verdict may be another one. */
function validUntil(facts: Facts, verdict: VerdictName): Micros {
  const { now, pill, market, maxAgeMs, cadenceMs } = facts;
  const { askAgainMinMs, askAgainMaxMs } = VERIFY_LIMITS;
  if (verdict === 'verified') {
    const ages = pill!.timestamp + maxAgeMs * 1000;
    const changes = (market.moment?.next?.at ?? Number.POSITIVE_INFINITY) * 1000;
    return Math.max(now, Math.min(ages, changes, silentFrom(facts.generator)));
  }
  const { opensMs, state } = market.now;
  if (verdict === 'stale' && state !== 'open' && opensMs !== undefined) return opensMs * 1000;
  // The next pill may change it; without a pace it is looked for now and then.
  const isHopeless = pill === undefined && cadenceMs === undefined;
  const waitMs = isHopeless ? askAgainMaxMs : (cadenceMs ?? askAgainMinMs);
  return now + Math.min(Math.max(Math.round(waitMs), askAgainMinMs), askAgainMaxMs) * 1000;
}

/** When the generator is silent, if nothing more comes of it. */
function silentFrom({ last_received_at, late_after_ms }: GeneratorState): Micros {
  const heard = last_received_at === null ? undefined : parseTimestamp(last_received_at);
  return heard?.ok ? heard.micros + late_after_ms * 1000 : Number.POSITIVE_INFINITY;
}

const HALF_DAY_MS = 43_200_000;

/** The worst first, as the verdict goes; what is told of the market goes before ages. */
function sorted(reasons: readonly Reason[]): Reason[] {
  const rank = (reason: Reason) => VERDICTS.indexOf(verdictOf([reason]));
  const isMarket = ({ code }: Reason) => (code === 'market_not_open' ? 0 : 1);
  return [...reasons].sort((a, b) => rank(a) - rank(b) || isMarket(a) - isMarket(b));
}

function told(state: MarketState): string {
  return state === 'lunch_break' ? 'lunch break' : state;
}

/** `900 s`, `0.45 s`. */
function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(ms < 10_000 ? 2 : 0))} s`;
}

/** `03:30Z`; with its date where that is not within half a day. */
function clock(ms: number, nowMs: number): string {
  const text = `${formatTimestamp(ms * 1000).slice(0, 16)}Z`;
  return ms - nowMs < HALF_DAY_MS ? text.slice(11) : text;
}
