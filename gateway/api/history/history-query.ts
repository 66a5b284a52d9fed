import { FUTURE_MAX_MICROS } from '../../../schemas/pill.ts';
import { parseCursor, parsePosition } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import type { Format } from '../server/media-type.ts';
import { type AddFault, type Parsed, parameterFault } from '../server/parameters.ts';
import { readWellFormedSymbols } from '../server/symbol-list.ts';
import { lengthFaults, orderFaults, readTime } from '../server/time-range.ts';
import { HISTORY_LIMITS } from './limits.ts';

/** A timestamp is at most this far after the order time of its pill. */
export const AHEAD_MAX_MICROS = FUTURE_MAX_MICROS;

/** One end of a range of the log. */
export type RangeEnd =
  /** A cursor of one partition: the range lies in that partition alone. */
  | { readonly kind: 'cursor'; readonly partition: number; readonly offset: number }
  /** An absent partition is at its beginning. */
  | { readonly kind: 'position'; readonly offsets: ReadonlyMap<number, number> };

/** A range of the log: pills after one end, up to and including the other, in log order. */
export interface PositionRange {
  readonly kind: 'position';
  readonly symbol: string | undefined;
  readonly epoch: string;
  /** undefined: from the beginning. */
  readonly after: RangeEnd | undefined;
  /** undefined: to the end of what is stored. */
  readonly until: RangeEnd | undefined;
  /** The request has a grant, which the guard has checked. */
  readonly isGranted: boolean;
}

/** Pills of some symbols with an order time in [from, to), by order time. */
export interface TimeRange {
  readonly kind: 'time';
  readonly symbols: readonly string[];
  readonly order: 'asc' | 'desc';
  /** undefined: as long before the end as a range may be. */
  readonly from: Micros | undefined;
  /** undefined: to now. */
  readonly to: Micros | undefined;
}

export interface HistoryQuery {
  readonly range: PositionRange | TimeRange;
  readonly limit: number;
  /** The token as received, not yet verified. */
  readonly page: string | undefined;
  readonly format: Format | undefined;
}

const BY_TIME = ['from', 'to', 'order', 'symbols'];
const BY_POSITION = ['epoch', 'after', 'until', 'grant'];
const DAY_S = 86_400;
/** The form of an end of a range of the log. */
export const RANGE_END_HINT = 'Send a cursor, e.g. 3-104, or a position, e.g. k7f3:0-95,3-140.';

/**
 * Parses the query of `GET /api/pills`, whose members the schema has checked; reports all faults in
 * their combination at once.
 */
export function parseHistoryQuery(query: URLSearchParams): Parsed<HistoryQuery> {
  const faults: ParameterFault[] = [];
  const add: AddFault = (...fault) => faults.push(parameterFault(...fault));
  const symbol = query.get('symbol') ?? undefined;
  const limit = Number(query.get('limit') ?? HISTORY_LIMITS.pageDefault);
  const format = query.get('format') ?? undefined;
  const byTime = BY_TIME.filter((name) => query.has(name));
  const byPosition = BY_POSITION.filter((name) => query.has(name));
  if (byTime.length > 0 && byPosition.length > 0) {
    const hint =
      `\`${byPosition[0]}\` and \`${byTime[0]}\` exclude each other: use \`from\` and \`to\`, or ` +
      '`epoch`, `after` and `until`.';
    add(byPosition[0]!, 'parameters_exclusive', hint);
  } else if (byTime.length + byPosition.length === 0) {
    const hint =
      'Give a range: `symbol` and `from` (and `to`) or `order=desc`, or `after` or `until`, a ' +
      'position in the log.';
    add('from', 'missing', hint);
  }
  const range =
    byPosition.length > 0
      ? parsePositionRange(query, symbol, add)
      : parseTimeRange(query, symbol, faults, add);
  if (faults.length > 0 || range === undefined) return { ok: false, faults };
  const page = query.get('page') ?? undefined;
  return { ok: true, value: { range, limit, page, format: format as HistoryQuery['format'] } };
}

/** The range as text, which a page token is bound to; page size and format may change. */
export function rangeText(query: URLSearchParams): string {
  const names = ['symbol', 'from', 'to', 'epoch', 'after', 'until'];
  const more = ['symbols', 'order'].filter((name) => query.has(name));
  const values = names.map((name) => query.get(name));
  return JSON.stringify([...values, ...more.flatMap((name) => [name, query.get(name)])]);
}

function parseTimeRange(
  query: URLSearchParams,
  symbol: string | undefined,
  faults: ParameterFault[],
  add: AddFault,
): TimeRange {
  const from = readTime('from', query.get('from') ?? undefined, faults);
  const to = readTime('to', query.get('to') ?? undefined, faults);
  const order = query.get('order') === 'desc' ? 'desc' : 'asc';
  const symbols = readSubject(symbol, query.get('symbols'), faults, add);
  const isNamed = faults.some(({ parameter }) => parameter === 'from');
  if (!query.has('from') && order === 'asc' && !isNamed) {
    add('from', 'missing', 'Oldest first requires `from`. `order=desc` begins with the newest.');
  }
  // Without `to` the range ends with the stored pills; `from` may even be in the future.
  if (from !== undefined && to !== undefined) {
    faults.push(...orderFaults({ since: from, until: to }));
  }
  return { kind: 'time', symbols, order, from, to };
}

/** The symbols of a range by time. */
function readSubject(
  symbol: string | undefined,
  list: string | null,
  faults: ParameterFault[],
  add: AddFault,
): readonly string[] {
  const { symbolsMax } = HISTORY_LIMITS;
  if (list !== null) {
    if (symbol === undefined) return readWellFormedSymbols(list, faults);
    add('symbols', 'parameters_exclusive', 'Use `symbol` or `symbols`, not both.');
  } else if (symbol === undefined) {
    const hint = `A range by time requires \`symbol\`, or \`symbols\` with up to ${symbolsMax}.`;
    add('symbol', 'missing', hint);
  }
  return symbol === undefined ? [] : [symbol];
}

/** Start of a range by time. @param now end of a range without `to` */
export function startOf({ from, to }: TimeRange, now: Micros): Micros {
  return from ?? (to ?? now) - HISTORY_LIMITS.rangeDaysMax * DAY_S * 1e6;
}

/** Faults of a range by time that is too long, with one that would fit. @param now end without `to` */
export function timeRangeFaults(range: TimeRange, now: Micros): ParameterFault[] {
  const window = { since: startOf(range, now), until: range.to ?? now };
  return lengthFaults(window, HISTORY_LIMITS.rangeDaysMax * DAY_S);
}

function parsePositionRange(
  query: URLSearchParams,
  symbol: string | undefined,
  add: AddFault,
): PositionRange | undefined {
  let epoch = query.get('epoch') ?? undefined;
  let hasCursor = false;
  const parseEnd = (name: string): RangeEnd | undefined => {
    const text = query.get(name);
    if (text === null) return undefined;
    const cursor = parseCursor(text);
    if (cursor !== undefined) {
      hasCursor = true;
      return { kind: 'cursor', ...cursor };
    }
    const position = parsePosition(text);
    if (position === undefined) {
      add(name, 'position_malformed', RANGE_END_HINT);
      return undefined;
    }
    if (epoch !== undefined && epoch !== position.epoch) {
      add(name, 'epochs_differ', '`epoch`, `after` and `until` must name the same epoch.');
    }
    epoch ??= position.epoch;
    return { kind: 'position', offsets: position.offsets };
  };
  const after = parseEnd('after');
  const until = parseEnd('until');
  if (hasCursor && epoch === undefined && !query.has('epoch')) {
    add('epoch', 'missing', 'A cursor requires `epoch`, the epoch of its log.');
  }
  if (after?.kind === 'cursor' && until?.kind === 'cursor') {
    if (after.partition !== until.partition) {
      add('until', 'partitions_differ', '`after` and `until` are in different partitions.');
    }
  }
  if (epoch === undefined) {
    if (!query.has('epoch') && after === undefined && until === undefined) {
      add('epoch', 'missing', 'Give `epoch`, or a position, which includes its epoch.');
    }
    return undefined;
  }
  return { kind: 'position', symbol, epoch, after, until, isGranted: query.has('grant') };
}
