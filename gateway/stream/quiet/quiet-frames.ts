import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { LIMITS } from '../limits.ts';
import { encodeFrame } from '../protocol/server-frames.ts';
import { ALL_SYMBOLS } from '../protocol/subscription.ts';
import type { QuietGroup, QuietState } from './quiet-groups.ts';

/** `quiet` of a named symbol: why no pills arrive, since when, and until when. */
export function quietFrame(state: QuietState): Buffer {
  const { symbol, venue, reason, sinceMs, untilMs, lateAfterMs, over } = state;
  return encodeFrame({
    type: 'quiet',
    symbol,
    venue,
    reason,
    since: time(sinceMs),
    until: time(untilMs),
    late_after_ms: lateAfterMs,
    over: over || undefined,
  });
}

/** `quiet` of a symbol without any pill so far. */
export function neverSeenFrame(symbol: string): Buffer {
  return encodeFrame({ type: 'quiet', symbol, reason: 'never_seen', since: null, until: null });
}

/**
 * `quiet` for subscribers to `*`: the number of symbols of a venue that are quiet for one reason,
 * and the first of them; none with `over`.
 */
export function quietSummaryFrame(
  { venue, quiet, symbols }: QuietGroup,
  over: boolean,
  nowMs: number,
): Buffer {
  const first: string[] = [];
  for (const symbol of symbols) {
    if (over || first.length === LIMITS.quietSummarySymbolsMax) break;
    first.push(symbol);
  }
  return encodeFrame({
    type: 'quiet',
    symbol: ALL_SYMBOLS,
    venue,
    reason: quiet.reason,
    since: time(quiet.sinceMs),
    until: time(over ? nowMs : quiet.untilMs),
    over: over || undefined,
    count: over ? 0 : symbols.size,
    symbols: first,
  });
}

/** `quiet` for all: no pill of any symbol arrives. @param untilMs when a pill arrived again */
export function generatorSilentFrame(sinceMs: number, untilMs: number | undefined): Buffer {
  return encodeFrame({
    type: 'quiet',
    symbol: ALL_SYMBOLS,
    reason: 'generator_silent',
    since: time(sinceMs),
    until: time(untilMs),
    over: untilMs !== undefined || undefined,
  });
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : formatTimestamp(Math.round(ms * 1000));
}
