import { formatCursor, formatPosition, type Offsets } from '../../../schemas/position.ts';
import { fault, type ParameterFault } from '../parameters.ts';
import { HISTORY_LIMITS } from './limits.ts';
import type { Place, PlaceQuestion } from './question.ts';

/** A stretch of one partition: offsets in (after, until]. */
export interface Stretch {
  readonly partition: number;
  /** −1 at the beginning. */
  readonly after: number;
  readonly until: number;
}

/** A question by position in terms of this log. */
export interface Span {
  /** Those with something in them, partitions ascending: the order of pages. */
  readonly stretches: readonly Stretch[];
  /** Where the caller stood, and stands once all was handed over. */
  readonly start: Offsets;
  readonly end: Offsets;
}

export interface Log {
  readonly epoch: string;
  readonly partitions: number;
  readonly partitionOf: (symbol: string) => number;
}

/** Whether a question names a log, or a partition, that is not ours. */
export function isForeign({ epoch, after, until }: PlaceQuestion, log: Log): boolean {
  const partitions = [after, until].flatMap((place) =>
    place === undefined
      ? []
      : place.kind === 'cursor'
        ? [place.partition]
        : [...place.offsets.keys()],
  );
  return epoch !== log.epoch || partitions.some((partition) => partition >= log.partitions);
}

/** Partitions that a question is about. */
export function partitionsOf({ symbol, after, until }: PlaceQuestion, log: Log): number[] {
  if (symbol !== undefined) return [log.partitionOf(symbol)];
  for (const place of [after, until]) if (place?.kind === 'cursor') return [place.partition];
  return Array.from({ length: log.partitions }, (_, partition) => partition);
}

/** How far the pills must be stored for an answer; nothing where the end was left open. */
export function wanted(question: PlaceQuestion, log: Log): Offsets {
  const { until } = question;
  if (until === undefined) return new Map();
  return new Map(partitionsOf(question, log).map((p) => [p, offsetOf(until, p) ?? -1]));
}

/** What is wrong between the parts of a question. */
export function spanFaults(question: PlaceQuestion, log: Log): ParameterFault[] {
  const { symbol, after, until } = question;
  const faults: ParameterFault[] = [];
  if (symbol !== undefined) {
    const right = log.partitionOf(symbol);
    for (const [name, place] of Object.entries({ after, until })) {
      if (place?.kind !== 'cursor' || place.partition === right) continue;
      faults.push(fault(name, 'partition_wrong', `${symbol} is in partition ${right}.`));
    }
  }
  if (faults.length > 0 || after === undefined || until === undefined) return faults;
  const isBackwards = partitionsOf(question, log).some(
    (p) => (offsetOf(after, p) ?? -1) > (offsetOf(until, p) ?? -1),
  );
  if (isBackwards) faults.push(fault('until', 'range_backwards', 'It is before after.'));
  return faults;
}

/** @param stored how far history is; the end of a question that has none */
export function spanOf(question: PlaceQuestion, log: Log, stored: Offsets): Span {
  const { symbol, after, until } = question;
  const asked = partitionsOf(question, log);
  const start = after?.kind === 'position' ? new Map(after.offsets) : new Map<number, number>();
  // Nothing of the question is in the other partitions: past them, a resume reads nothing twice.
  const isAboutAll = symbol !== undefined || asked.length === log.partitions;
  const end = new Map(start);
  const horizon = until?.kind === 'position' ? until.offsets : stored;
  if (isAboutAll) {
    for (const [p, offset] of horizon) if (offset > (end.get(p) ?? -1)) end.set(p, offset);
  }
  const stretches: Stretch[] = [];
  for (const partition of asked) {
    const from = offsetOf(after, partition) ?? -1;
    const to = (until === undefined ? stored.get(partition) : offsetOf(until, partition)) ?? -1;
    if (from >= 0) start.set(partition, from);
    const last = Math.max(from, to);
    if (last >= 0) end.set(partition, last);
    else end.delete(partition);
    if (to > from) stretches.push({ partition, after: from, until: to });
  }
  return { stretches, start, end };
}

/** A question by position that is too long: what would fit. */
export function widthFault(
  { stretches, start }: Span,
  question: PlaceQuestion,
  { epoch }: Log,
): ParameterFault[] {
  const { placesMax } = HISTORY_LIMITS;
  const width = stretches.reduce((sum, { after, until }) => sum + until - after, 0);
  if (width <= placesMax || question.isGranted) return [];
  const share = Math.floor(placesMax / stretches.length);
  const ends = stretches.map(
    ({ partition, after, until }) => [partition, Math.min(until, after + share)] as const,
  );
  const isBare = question.after?.kind === 'cursor' || question.until?.kind === 'cursor';
  const [[partition, offset] = [0, 0]] = ends;
  const fits = isBare
    ? formatCursor(partition, offset)
    : formatPosition(epoch, new Map([...start, ...ends]));
  const hint = `${width} places of the log, limit ${placesMax}. until=${fits} would fit; go on there.`;
  return [fault('until', 'range_too_large', hint)];
}

/** All pills of the question up to here were handed over, once the page that ends at `at` was. */
export function reached(
  span: Span,
  at: { partition: number; offset: number } | undefined,
): Offsets {
  if (at === undefined) return span.end;
  const offsets = new Map(span.end);
  for (const { partition, after, until } of span.stretches) {
    if (partition < at.partition) continue;
    const offset = partition === at.partition ? Math.min(at.offset, until) : after;
    if (offset >= 0) offsets.set(partition, offset);
    else offsets.delete(partition);
  }
  return offsets;
}

function offsetOf(place: Place | undefined, partition: number): number | undefined {
  if (place === undefined) return undefined;
  if (place.kind === 'position') return place.offsets.get(partition);
  return place.partition === partition ? place.offset : undefined;
}
