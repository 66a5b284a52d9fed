/** What became of pills, as GET /api/generator/summary counts them. */
export interface Counts {
  /** With effect; late ones and backfill included. */
  readonly accepted: number;
  readonly late: number;
  readonly backfill: number;
  readonly repeated: number;
  /** By the consumers of the log. */
  readonly rejected: number;
  /** By ingest. */
  readonly refused: number;
}

export interface Reason {
  readonly channel: 'http' | 'log';
  readonly code: string;
  /** Code of the first fault; empty if none. */
  readonly fault: string;
  readonly count: number;
}

/** The outcomes of one source in one hour. */
export interface HourOutcomes extends Counts {
  /** ISO 8601. */
  readonly hour: string;
  /** Empty if unknown. */
  readonly source: string;
  readonly reasons: readonly Reason[];
}

export interface SourceOutcomes extends Counts {
  readonly source: string;
}

export interface SourceReason extends Reason {
  readonly source: string;
}

const NONE: Counts = { accepted: 0, late: 0, backfill: 0, repeated: 0, rejected: 0, refused: 0 };

/** All pills that were sent; late ones and backfill are among the accepted. */
const sentOf = ({ accepted, repeated, rejected, refused }: Counts) =>
  accepted + repeated + rejected + refused;

export function totalOf(parts: readonly Counts[]): Counts {
  return parts.reduce(
    (sum, part) => ({
      accepted: sum.accepted + part.accepted,
      late: sum.late + part.late,
      backfill: sum.backfill + part.backfill,
      repeated: sum.repeated + part.repeated,
      rejected: sum.rejected + part.rejected,
      refused: sum.refused + part.refused,
    }),
    NONE,
  );
}

/** The totals of each source; those with most pills first. */
export function bySource(hours: readonly HourOutcomes[]): readonly SourceOutcomes[] {
  return [...grouped(hours, ({ source }) => source)]
    .map(([source, of]) => ({ source, ...totalOf(of) }))
    .sort((a, b) => sentOf(b) - sentOf(a) || compare(a.source, b.source));
}

/** The reasons of all hours, by source; the most frequent first. */
export function byReason(hours: readonly HourOutcomes[]): readonly SourceReason[] {
  const all = hours.flatMap(({ source, reasons }) => reasons.map((one) => ({ source, ...one })));
  return [...grouped(all, reasonKey).values()]
    .map((same) => ({ ...same[0]!, count: same.reduce((sum, { count }) => sum + count, 0) }))
    .sort((a, b) => b.count - a.count || compare(reasonKey(a), reasonKey(b)));
}

/** Names a reason of a source; no two have the same. */
export function reasonKey({ source, channel, code, fault }: SourceReason): string {
  return JSON.stringify([source, channel, code, fault]);
}

function grouped<T>(
  all: readonly T[],
  keyOf: (one: T) => string,
): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group === undefined) groups.set(keyOf(one), [one]);
    else group.push(one);
  }
  return groups;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Says how much of a list is shown: `The newest 50 of 1,234 hours.`; empty if all of it. */
export function boundOf(order: string, shown: number, count: number, what: string): string {
  if (shown >= count) return '';
  return `The ${order} ${shown.toLocaleString('en')} of ${count.toLocaleString('en')} ${what}.`;
}
