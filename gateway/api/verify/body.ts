import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { pillFields } from '../pill-body.ts';
import type { Found } from './finder.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { WeighedPill } from './verdict.ts';
import type { Weighed } from './weigher.ts';

/** A verdict as it is answered. */
export function verdictBody({ facts, judgement }: Weighed, position: string) {
  const { pill, market, generator, quiet, spread, maxAgeMs } = facts;
  return {
    subject: { symbol: facts.symbol },
    ...judgementBody({ facts, judgement }),
    pill: pill === undefined ? null : pillBody(pill),
    age_ms: judgement.ageMs ?? null,
    max_age_ms: maxAgeMs,
    market: marketBody(market),
    agreement:
      pill === undefined
        ? null
        : { pill: pill.market_state, calendar: market.atPill, agrees: judgement.agrees },
    generator: {
      ...{ state: generator.state, last_received_at: generator.last_received_at },
      ...{ silent_ms: generator.age_ms, late_after_ms: generator.late_after_ms },
    },
    spread:
      spread === undefined
        ? null
        : {
            ...{ value: spread.value, n: spread.n },
            window: `last ${VERIFY_LIMITS.windowPills} pills`,
            ...{ median: spread.median, p01: spread.p01, p99: spread.p99 },
            // JSON knows no infinity: any other value where all were equal.
            robust_z: Number.isFinite(spread.robustZ) ? Number(spread.robustZ.toFixed(4)) : null,
            percentile: spread.percentile,
          },
    quiet:
      quiet === undefined
        ? null
        : {
            reason: quiet.reason,
            since: instant(quiet.sinceMs),
            expected_back: instant(quiet.untilMs),
          },
    limits: {
      max_age_ms: maxAgeMs,
      generator_late_after_ms: generator.late_after_ms,
      robust_z: VERIFY_LIMITS.robustZMax,
      spread_n_min: VERIFY_LIMITS.windowPillsMin,
      boundary_ms: VERIFY_LIMITS.boundaryMs,
      ahead_ms: VERIFY_LIMITS.aheadMs,
      lag_ms: VERIFY_LIMITS.lagMaxMs,
    },
    position,
  };
}

/** A verdict about one id. Of the newest pill everything is told, as of its symbol. */
export function foundBody(found: Found, weighed: Weighed, position: string) {
  const { pill, epoch, repeats, conflicts } = found;
  const isLatest = weighed.facts.newer === undefined;
  const rest = {
    is_latest: isLatest,
    repeats: repeats ?? null,
    conflicts: conflicts ?? null,
    ...(epoch === undefined ? {} : { epoch }),
  };
  const subject = { symbol: pill.symbol, id: pill.id };
  if (isLatest) return { ...verdictBody(weighed, position), subject, published: true, ...rest };
  const judged = judgementBody(weighed);
  return { subject, published: true, ...judged, pill: pillBody(pill), ...rest, position };
}

/** A verdict about an id that was not found. `published` is null where a part was not searched. */
export function missingBody(id: string, weighed: Weighed, searched: Searched, position: string) {
  return {
    subject: { symbol: weighed.facts.symbol, id },
    published: searched.isAll ? false : null,
    ...judgementBody(weighed),
    position,
    searched_from: searched.from === undefined ? null : formatTimestamp(searched.from),
  };
}

export interface Searched {
  readonly isAll: boolean;
  readonly from: number | undefined;
}

function judgementBody({ facts, judgement }: Weighed) {
  return {
    checked_at: formatTimestamp(facts.now),
    verdict: judgement.verdict,
    usable: judgement.verdict === 'verified',
    reasons: judgement.reasons,
    valid_until: formatTimestamp(Math.round(judgement.validUntil)),
  };
}

function marketBody({ venue, basis, moment, now, atPill }: Weighed['facts']['market']) {
  return {
    venue: venue ?? null,
    timezone: moment?.timezone ?? null,
    session_date: moment?.sessionDate ?? null,
    now: now.state,
    at_pill: atPill ?? null,
    half_day: moment?.halfDay ?? false,
    next:
      moment?.next === undefined ? null : { at: instant(moment.next.at), state: moment.next.state },
    basis,
    calendar_until: moment?.calendarUntil ?? null,
  };
}

function pillBody(pill: WeighedPill) {
  return { cursor: formatCursor(pill.partition, pill.offset), ...pillFields(pill) };
}

/** A time of the calendar in whole seconds; one of a pill with its six decimals. */
function instant(ms: number | undefined): string | null {
  if (ms === undefined) return null;
  const text = formatTimestamp(Math.round(ms * 1000));
  return text.endsWith('.000000Z') ? `${text.slice(0, 19)}Z` : text;
}
