import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Group, Told } from './quiet-watch.ts';

/** Symbols that a summary names; the rest is counted. */
export const SUMMARY_SYMBOLS = 20;

/** `quiet` of a symbol that somebody named: why no pill comes, since when, until when. */
export function quietFrame({ symbol, venue, lateAfterMs, over, ...quiet }: Told): Buffer {
  return frame({
    ...{ symbol, venue, reason: quiet.reason },
    ...{ since: time(quiet.sinceMs), until: time(quiet.untilMs) },
    late_after_ms: lateAfterMs,
    over: over || undefined,
  });
}

/** `quiet` of a symbol that nobody has ever sent. */
export function neverSeenFrame(symbol: string): Buffer {
  return frame({ symbol, reason: 'never_seen', since: null, until: null });
}

/**
 * `quiet` for those who want `*`: how many symbols of a venue are quiet now for one reason, and the
 * first of them; `over` when it is none.
 */
export function quietSummaryFrame({ venue, quiet, symbols }: Group, nowMs: number): Buffer {
  const over = symbols.size === 0;
  const first: string[] = [];
  for (const symbol of symbols) {
    if (first.length === SUMMARY_SYMBOLS) break;
    first.push(symbol);
  }
  return frame({
    ...{ symbol: '*', venue, reason: quiet.reason },
    ...{ since: time(quiet.sinceMs), until: time(over ? nowMs : quiet.untilMs) },
    ...{ over: over || undefined, count: symbols.size, symbols: first },
  });
}

/** `quiet` for all: no pill of any symbol comes. @param untilMs when one came again */
export function silentFrame(sinceMs: number, untilMs: number | undefined): Buffer {
  return frame({
    ...{ symbol: '*', reason: 'generator_silent', since: time(sinceMs), until: time(untilMs) },
    over: untilMs === undefined ? undefined : true,
  });
}

function frame(document: object): Buffer {
  return Buffer.from(JSON.stringify({ type: 'quiet', ...document }));
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : formatTimestamp(Math.round(ms * 1000));
}
