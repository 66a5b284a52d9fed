import { formatCursor, formatPosition, type Offsets } from '../../../schemas/position.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import { parameterFault } from '../server/parameters.ts';
import type { PositionRange, RangeEnd } from './history-query.ts';
import { HISTORY_LIMITS } from './limits.ts';

/** One record of the log. */
export interface LogOffset {
  readonly partition: number;
  readonly offset: number;
}

/** Offsets of one partition in (after, until]. */
export interface PartitionRange {
  readonly partition: number;
  /** −1 at the beginning. */
  readonly after: number;
  readonly until: number;
}

/** A range by position, resolved to the partitions of this log. */
export interface ResolvedRange {
  /** Ranges that are not empty, partitions ascending: the order of pages. */
  readonly partitionRanges: readonly PartitionRange[];
  /** The caller's position at the start, and once everything has been returned. */
  readonly start: Offsets;
  readonly end: Offsets;
}

/** The topic of pills. */
export interface TopicLayout {
  readonly epoch: string;
  readonly partitions: number;
  readonly partitionOf: (symbol: string) => number;
}

/** Whether a range names a log, or a partition, that this topic does not have. */
export function isForeign({ epoch, after, until }: PositionRange, topic: TopicLayout): boolean {
  const partitions = [after, until].flatMap((end) =>
    end === undefined ? [] : end.kind === 'cursor' ? [end.partition] : [...end.offsets.keys()],
  );
  return epoch !== topic.epoch || partitions.some((partition) => partition >= topic.partitions);
}

function partitionsOf({ symbol, after, until }: PositionRange, topic: TopicLayout): number[] {
  if (symbol !== undefined) return [topic.partitionOf(symbol)];
  for (const end of [after, until]) if (end?.kind === 'cursor') return [end.partition];
  return Array.from({ length: topic.partitions }, (_, partition) => partition);
}

/** The offsets that the table must hold for an answer; none if the range has no end. */
export function requiredOffsets(range: PositionRange, topic: TopicLayout): Offsets {
  return offsetsOf(range.until, range, topic);
}

/** The offsets after which the range begins; none at the beginning of the log. */
export function startOffsets(range: PositionRange, topic: TopicLayout): Offsets {
  return offsetsOf(range.after, range, topic);
}

function offsetsOf(end: RangeEnd | undefined, range: PositionRange, topic: TopicLayout): Offsets {
  if (end === undefined) return new Map();
  return new Map(partitionsOf(range, topic).map((p) => [p, offsetOf(end, p) ?? -1]));
}

/** Contradictions between the parts of a range. */
export function rangeFaults(range: PositionRange, topic: TopicLayout): ParameterFault[] {
  const { symbol, after, until } = range;
  const faults: ParameterFault[] = [];
  if (symbol !== undefined) {
    const right = topic.partitionOf(symbol);
    for (const [name, end] of Object.entries({ after, until })) {
      if (end?.kind !== 'cursor' || end.partition === right) continue;
      faults.push(parameterFault(name, 'partition_wrong', `${symbol} is in partition ${right}.`));
    }
  }
  if (faults.length > 0 || after === undefined || until === undefined) return faults;
  const isBackwards = partitionsOf(range, topic).some(
    (p) => (offsetOf(after, p) ?? -1) > (offsetOf(until, p) ?? -1),
  );
  return isBackwards
    ? [parameterFault('until', 'range_backwards', '`until` is before `after`.')]
    : [];
}

/** @param covered offsets that the table holds: the end of a range without `until` */
export function resolveRange(
  range: PositionRange,
  topic: TopicLayout,
  covered: Offsets,
): ResolvedRange {
  const { symbol, after, until } = range;
  const partitions = partitionsOf(range, topic);
  const start = after?.kind === 'position' ? new Map(after.offsets) : new Map<number, number>();
  const end = new Map(start);
  const horizon = until?.kind === 'position' ? until.offsets : covered;
  // The other partitions hold nothing of the range, so its final position skips them: a client that
  // resumes from there reads nothing twice.
  if (symbol !== undefined || partitions.length === topic.partitions) {
    for (const [p, offset] of horizon) if (offset > (end.get(p) ?? -1)) end.set(p, offset);
  }
  const partitionRanges: PartitionRange[] = [];
  for (const partition of partitions) {
    const from = offsetOf(after, partition) ?? -1;
    const to = (until === undefined ? covered.get(partition) : offsetOf(until, partition)) ?? -1;
    if (from >= 0) start.set(partition, from);
    const last = Math.max(from, to);
    if (last >= 0) end.set(partition, last);
    else end.delete(partition);
    if (to > from) partitionRanges.push({ partition, after: from, until: to });
  }
  return { partitionRanges, start, end };
}

/** A fault that suggests a shorter range, if this one is too long. */
export function lengthFault(
  { partitionRanges, start }: ResolvedRange,
  range: PositionRange,
  { epoch }: TopicLayout,
): ParameterFault[] {
  const { offsetsMax } = HISTORY_LIMITS;
  const length = partitionRanges.reduce((sum, { after, until }) => sum + until - after, 0);
  if (length <= offsetsMax || range.isGranted) return [];
  const share = Math.floor(offsetsMax / partitionRanges.length);
  const ends = partitionRanges.map(
    ({ partition, after, until }) => [partition, Math.min(until, after + share)] as const,
  );
  const isCursor = range.after?.kind === 'cursor' || range.until?.kind === 'cursor';
  const [[partition, offset] = [0, 0]] = ends;
  const fits = isCursor
    ? formatCursor(partition, offset)
    : formatPosition(epoch, new Map([...start, ...ends]));
  const hint = `The range has ${length} offsets, limit ${offsetsMax}. until=${fits} would fit; continue from there.`;
  return [parameterFault('until', 'range_too_large', hint)];
}

/** The position once the page that ends at `at` has been returned; undefined: the last page. */
export function positionAfter(resolved: ResolvedRange, at: LogOffset | undefined): Offsets {
  if (at === undefined) return resolved.end;
  const offsets = new Map(resolved.end);
  for (const { partition, after, until } of resolved.partitionRanges) {
    if (partition < at.partition) continue;
    const offset = partition === at.partition ? Math.min(at.offset, until) : after;
    if (offset >= 0) offsets.set(partition, offset);
    else offsets.delete(partition);
  }
  return offsets;
}

function offsetOf(end: RangeEnd | undefined, partition: number): number | undefined {
  if (end === undefined) return undefined;
  if (end.kind === 'position') return end.offsets.get(partition);
  return end.partition === partition ? end.offset : undefined;
}
