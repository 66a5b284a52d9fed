import type { Quiet } from '../../../domain/market/quiet/silence.ts';
import { publicPill } from '../../../schemas/public-pill.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { roundFigure } from '../server/figures.ts';
import type { Evaluation } from './evaluator.ts';
import type { SubjectPill } from './facts.ts';
import { VERIFY_LIMITS, verdictLimits } from './limits.ts';
import type { FoundPill } from './pill-search.ts';
import type { SpreadFigures } from './spread.ts';

/** Writes a verdict about a symbol. */
export function verdictBody({ facts, judgement }: Evaluation, position: string) {
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
      state: generator.state,
      last_received_at: generator.last_received_at,
      silent_ms: generator.age_ms,
      late_after_ms: generator.late_after_ms,
    },
    spread: spread === undefined ? null : spreadBody(spread),
    quiet: quiet === undefined ? null : quietBody(quiet),
    limits: verdictLimits(maxAgeMs, generator.late_after_ms),
    position,
  };
}

/** Writes a verdict about an id; for the newest pill, as detailed as a verdict about its symbol. */
export function foundBody(found: FoundPill, evaluation: Evaluation, position: string) {
  const { pill, epoch, repeats, conflicts } = found;
  const isLatest = evaluation.facts.newer === undefined;
  const rest = {
    is_latest: isLatest,
    repeats: repeats ?? null,
    conflicts: conflicts ?? null,
    ...(epoch === undefined ? {} : { epoch }),
  };
  const subject = { symbol: pill.symbol, id: pill.id };
  if (isLatest) return { ...verdictBody(evaluation, position), subject, published: true, ...rest };
  const judged = judgementBody(evaluation);
  return { subject, published: true, ...judged, pill: pillBody(pill), ...rest, position };
}

/** Writes a verdict about an id that was not found; `published` is null if a part was not searched. */
export function missingBody(
  id: string,
  evaluation: Evaluation,
  searched: { readonly isComplete: boolean; readonly from: number | undefined },
  position: string,
) {
  return {
    subject: { symbol: evaluation.facts.symbol, id },
    published: searched.isComplete ? false : null,
    ...judgementBody(evaluation),
    position,
    searched_from: searched.from === undefined ? null : formatTimestamp(searched.from),
  };
}

function judgementBody({ facts, judgement }: Evaluation) {
  return {
    checked_at: formatTimestamp(facts.now),
    verdict: judgement.verdict,
    usable: judgement.verdict === 'verified',
    reasons: judgement.reasons,
    valid_until: formatTimestamp(Math.round(judgement.validUntil)),
    ask_again_at: formatTimestamp(Math.round(judgement.askAgainAt)),
  };
}

function marketBody({ venue, basis, moment, now, atPill }: Evaluation['facts']['market']) {
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

function quietBody({ reason, sinceMs, untilMs }: Quiet) {
  return { reason, since: instant(sinceMs), expected_back: instant(untilMs) };
}

function spreadBody({ value, n, median, p01, p99, robustZ, percentile }: SpreadFigures) {
  return {
    value,
    n,
    window: `last ${VERIFY_LIMITS.windowPills} pills`,
    median: roundFigure('spread', median),
    p01: roundFigure('spread', p01),
    p99: roundFigure('spread', p99),
    // Infinite if all spreads were equal and this one is not; JSON has no infinity.
    robust_z: Number.isFinite(robustZ) ? roundFigure('z', robustZ) : null,
    percentile: roundFigure('share', percentile),
  };
}

function pillBody(pill: SubjectPill) {
  // Verdicts carry no `late`: pills of the log cache have this flag, but pills of the table do not.
  return publicPill({ ...pill, late: false }, {});
}

function instant(ms: number | undefined): string | null {
  return ms === undefined ? null : formatTimestamp(Math.round(ms * 1000));
}
