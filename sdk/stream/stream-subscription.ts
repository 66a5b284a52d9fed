import { PilloleError } from '../error.ts';
import type { Pill } from '../rest/responses.ts';
import type { Subscribe } from './stream-frames.ts';
import type { Resume, StreamOptions } from './stream-types.ts';

export type Subscription = ReturnType<typeof subscriptionOf>;

/** The subscription of a stream, with its defaults. @throws PilloleError `no_symbols` */
export function subscriptionOf(options: StreamOptions) {
  const { symbols, mode = 'all', filter, snapshot = true, backfill = false } = options;
  const named: readonly string[] = typeof symbols === 'string' ? [symbols] : [...new Set(symbols)];
  if (named.length > 0) return { symbols: named, mode, filter, snapshot, backfill };
  throw new PilloleError({ code: 'no_symbols', message: 'Name at least one symbol, or "*".' });
}

/** The server's limit on one frame, unless `welcome` has another. */
export const FRAME_BYTES_MAX = 4_096;

/**
 * The subscribe frames of a subscription: as few as the limit on their size allows. The server
 * answers each one separately.
 */
export function subscribeFrames(
  { symbols, filter, ...settings }: Subscription,
  resume: Resume | undefined,
  bytesMax: number,
): (Subscribe & { readonly id: string })[] {
  const frames: (Subscribe & { readonly id: string })[] = [];
  const frameOf = (part: readonly string[]) => ({
    op: 'subscribe' as const,
    id: `s${frames.length + 1}`,
    symbols: part,
    ...settings,
    ...(filter === undefined ? {} : { filter }),
    ...(resume === undefined ? {} : { resume }),
  });
  const encoder = new TextEncoder();
  const sizeOf = (value: unknown) => encoder.encode(JSON.stringify(value)).length;
  const emptyBytes = sizeOf(frameOf([])) + 8; // room for a longer id
  let part: string[] = [];
  let bytes = emptyBytes;
  for (const symbol of symbols) {
    const symbolBytes = sizeOf(symbol) + 1;
    if (part.length > 0 && bytes + symbolBytes > bytesMax) {
      frames.push(frameOf(part));
      part = [];
      bytes = emptyBytes;
    }
    part.push(symbol);
    bytes += symbolBytes;
  }
  if (part.length > 0) frames.push(frameOf(part));
  return frames;
}

/**
 * Whether the stream would have sent a pill to this subscription. History has all pills, so a fill
 * leaves out what the stream leaves out: pills that the filter excludes, backfill that was not
 * requested, and, in mode `latest`, late pills, which replace no newer one.
 */
export function matchesSubscription({ filter, backfill, mode }: Subscription, pill: Pill): boolean {
  if (pill.backfill === true && !backfill) return false;
  if (pill.late === true && mode === 'latest') return false;
  if (filter === undefined) return true;
  const { min_confidence = 0, min_spread, max_spread, states } = filter;
  return (
    pill.confidence >= min_confidence &&
    pill.gross_spread_percent >= (min_spread ?? Number.NEGATIVE_INFINITY) &&
    pill.gross_spread_percent <= (max_spread ?? Number.POSITIVE_INFINITY) &&
    (states === undefined || states.includes(pill.market_state))
  );
}
