// A reference implementation of the analytics in plain code: tests compare the database's answers
// with it.
import type { Micros } from '../../../../schemas/timestamp.ts';

/** A pill as it is in the log. */
export interface LoggedPill {
  readonly offset: number;
  readonly symbol: string;
  readonly id: string;
  readonly timestamp: Micros;
  readonly receivedAt: Micros;
  readonly spread: number;
  readonly state: string;
  readonly confidence: number;
  readonly backfill: boolean;
}

export interface EffectivePill extends LoggedPill {
  readonly order: Micros;
  readonly late: boolean;
}

/** The pills with effect: the first pill of each identity, in log order. */
export function effective(log: readonly LoggedPill[]): EffectivePill[] {
  const known = new Set<string>();
  const newest = new Map<string, Micros>();
  return [...log]
    .sort((one, other) => one.offset - other.offset)
    .flatMap((pill) => {
      const identity = JSON.stringify([pill.symbol, pill.id]);
      if (known.has(identity)) return [];
      known.add(identity);
      const order = Math.min(pill.timestamp, pill.receivedAt);
      const before = newest.get(pill.symbol) ?? Number.NEGATIVE_INFINITY;
      newest.set(pill.symbol, Math.max(before, order));
      return [{ ...pill, order, late: order < before }];
    });
}

/** The pills of a symbol in a window, by order time, then by offset. */
export function within(
  pills: readonly EffectivePill[],
  symbol: string,
  since: Micros,
  until: Micros,
): EffectivePill[] {
  return pills
    .filter((pill) => pill.symbol === symbol && pill.order >= since && pill.order < until)
    .sort((one, other) => one.order - other.order || one.offset - other.offset);
}

/** Type 7 of Hyndman and Fan, like numpy and spreadsheets. */
export function percentile(values: readonly number[], level: number): number {
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * level;
  const below = sorted[Math.floor(at)]!;
  return below + (sorted[Math.ceil(at)]! - below) * (at - Math.floor(at));
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Standard deviation of a sample. */
export function deviation(values: readonly number[]): number {
  const middle = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}

/** The bar of pills in order; `end` is the end of the bar. */
export function barOf(pills: readonly EffectivePill[], end: Micros) {
  const spreads = pills.map(({ spread }) => spread);
  return {
    open: spreads[0]!,
    high: Math.max(...spreads),
    low: Math.min(...spreads),
    close: spreads.at(-1)!,
    count: pills.length,
    mean: mean(spreads),
    p05: percentile(spreads, 0.05),
    p50: percentile(spreads, 0.5),
    p95: percentile(spreads, 0.95),
    mean_confidence: mean(pills.map(({ confidence }) => confidence)),
    late_count: pills.filter(({ late }) => late).length,
    revision: pills.filter(({ receivedAt }) => receivedAt >= end).length,
  };
}

/** Bars of equal length, by start. */
export function bars(pills: readonly EffectivePill[], stepUs: number) {
  const groups = new Map<Micros, EffectivePill[]>();
  for (const pill of pills) {
    const start = Math.floor(pill.order / stepUs) * stepUs;
    groups.set(start, [...(groups.get(start) ?? []), pill]);
  }
  return new Map([...groups].map(([start, group]) => [start, barOf(group, start + stepUs)]));
}

/**
 * Seconds and spells of each state: cuts the window wherever the state may change, and looks up the
 * state of each piece.
 * @param pills of the symbol, in order, including those before the window
 */
export function states(
  pills: readonly EffectivePill[],
  since: Micros,
  until: Micros,
  holdUs: number,
) {
  const cuts = new Set([since, until]);
  for (const { order } of pills) {
    for (const cut of [order, order + holdUs]) if (cut > since && cut < until) cuts.add(cut);
  }
  const times = [...cuts].sort((one, other) => one - other);
  const found = new Map<string, { seconds: number; spells: number }>();
  let before: string | undefined;
  let at = -1;
  for (const [index, time] of times.slice(0, -1).entries()) {
    while (at + 1 < pills.length && pills[at + 1]!.order <= time) at += 1;
    const last = pills[at];
    const state = last !== undefined && time < last.order + holdUs ? last.state : 'unobserved';
    const entry = found.get(state) ?? { seconds: 0, spells: 0 };
    entry.seconds += (times[index + 1]! - time) / 1e6;
    if (state !== before) entry.spells += 1;
    found.set(state, entry);
    before = state;
  }
  return found;
}

/** How the spread developed after each pill. @param judged pills, each symbol in order */
export function trackRecord(
  judged: readonly EffectivePill[],
  all: readonly EffectivePill[],
  { horizonUs, ageMaxUs, asOf }: { horizonUs: number; ageMaxUs: number; asOf: Micros },
) {
  const live = new Map<string, EffectivePill[]>();
  for (const { symbol } of judged) {
    if (live.has(symbol)) continue;
    const own = within(all, symbol, 0, Number.POSITIVE_INFINITY);
    live.set(
      symbol,
      own.filter(({ backfill }) => !backfill),
    );
  }
  // Pills of each symbol before the end of the current horizon, which only moves forward.
  const counts = new Map<string, number>();
  return judged.map((pill) => {
    if (pill.backfill) return { pill, outcome: 'excluded_backfill', after: undefined };
    const end = pill.order + horizonUs;
    if (end > asOf) return { pill, outcome: 'unsettled', after: undefined };
    const own = live.get(pill.symbol)!;
    let count = counts.get(pill.symbol) ?? 0;
    while (count < own.length && own[count]!.order <= end) count += 1;
    counts.set(pill.symbol, count);
    const last = own[count - 1]!;
    const after = last.order > pill.order ? last : undefined;
    return after !== undefined && after.order >= end - ageMaxUs
      ? { pill, outcome: 'settled', after: after.spread }
      : { pill, outcome: 'not_observable', after: undefined };
  });
}

/** Modified z-score against the preceding pills, in order; undefined with fewer than 30. */
export function outlierScores(pills: readonly EffectivePill[]) {
  return pills.map((pill, at) => {
    const before = pills.slice(Math.max(0, at - 1_000), at).map(({ spread }) => spread);
    if (before.length < 30) return { pill, z: undefined };
    const median = percentile(before, 0.5);
    const mad = percentile(
      before.map((spread) => Math.abs(spread - median)),
      0.5,
    );
    return { pill, z: mad === 0 ? undefined : (0.6745 * (pill.spread - median)) / mad };
  });
}
