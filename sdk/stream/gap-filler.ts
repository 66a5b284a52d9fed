import type { Pill } from '../rest/responses.ts';
import { GAP_LIMITS, gapPath, readGapPages, withLimit } from './gap-pages.ts';
import type { GapFrame } from './stream-frames.ts';
import { offsetOf } from './stream-position.ts';
import { deliver, type StreamRuntime } from './stream-runtime.ts';
import { matchesSubscription } from './stream-subscription.ts';
import type { GapItem } from './stream-types.ts';

/** A gap of one symbol that the client itself detected. */
export interface Break {
  readonly symbol: string;
  readonly after: string | null;
  readonly until: string;
}

const NOT_FILLED = { pills: 0, filled: false, error: undefined } as const;

/** Fills a gap that the server reported, if possible, and reports it. */
export async function fillFrame(runtime: StreamRuntime, frame: GapFrame): Promise<void> {
  const { symbols, after, until, reason, fill: path } = frame;
  const isFillable = runtime.isFilling && typeof path === 'string';
  const result = isFillable ? await fill(runtime, withLimit(path), null, after) : NOT_FILLED;
  report(runtime, { symbols, after, until, reason, ...result });
}

/** Fills breaks with the same reason, or reports them as one gap if there are too many. */
export async function fillBreaks(
  runtime: StreamRuntime,
  breaks: readonly Break[],
  reason: string,
  epoch: string,
): Promise<void> {
  if (runtime.isFilling && breaks.length <= GAP_LIMITS.symbolsMax) {
    for (const { symbol, after, until } of breaks) {
      const isAhead = Math.max(offsetOf(until), 0) > offsetOf(after);
      const path = gapPath(symbol, epoch, after, until);
      const result = isAhead ? await fill(runtime, path, until, after) : NOT_FILLED;
      report(runtime, { symbols: [symbol], after, until, reason, ...result });
    }
    return;
  }
  const symbols = breaks.map(({ symbol }) => symbol);
  const { after, until } = breaks.length === 1 ? breaks[0]! : { after: null, until: null };
  report(runtime, { symbols, after, until, reason, ...NOT_FILLED });
}

/** Reports that pills may be missing, but that it is unknown which ones. */
export function reportUnknown(
  runtime: StreamRuntime,
  symbols: readonly string[],
  reason: string,
): void {
  report(runtime, { symbols, after: null, until: null, reason, ...NOT_FILLED });
}

function report(runtime: StreamRuntime, gap: Omit<GapItem, 'type'>): void {
  deliver(runtime, { type: 'gap', ...gap }, false);
}

/** Delivers the pills of the gap that history has, except pills of earlier connections. */
async function fill(
  runtime: StreamRuntime,
  path: string,
  until: string | null,
  after: string | null,
) {
  const { deps, chains, output, stop, stopFilling, subscription } = runtime;
  let pills = 0;
  const onPill = (pill: Pill) => {
    const deliveredTo = Math.max(offsetOf(after), chains.deliveredBefore(pill.symbol));
    if (offsetOf(pill.cursor) <= deliveredTo || !matchesSubscription(subscription, pill)) return;
    pills += 1;
    chains.addPill(pill);
    deliver(runtime, { type: 'pill', ...pill, replayed: true }, false);
  };
  const signal = AbortSignal.any([stop.signal, stopFilling.signal]);
  const error = await readGapPages(deps.rest, path, { until, onPill, room: output.room, signal });
  return { pills, error, filled: error === undefined };
}
