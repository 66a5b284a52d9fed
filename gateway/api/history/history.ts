import type { Turns } from '../../../lib/rate/turns.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatPosition, type Offsets, parsePosition } from '../../../schemas/position.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import type { Refusal } from '../../http/problems.ts';
import { endBefore, type ReadLogEnd } from '../clickhouse/log-end.ts';
import type { OutputFormat, ReadBytes } from '../clickhouse/read-bytes.ts';
import type { Select } from '../clickhouse/select.ts';
import {
  type AsOf,
  asOfBody,
  covers,
  coversLog,
  type TableCoverage,
} from '../clickhouse/table-coverage.ts';
import { parameterFault } from '../server/parameters.ts';
import { PAGE_HINT } from '../server/schemas.ts';
import type { CoverageWatcher } from './coverage-watcher.ts';
import { type PillRows, TYPED_COLUMNS } from './history-pill.ts';
import { type PositionRange, startOf, type TimeRange, timeRangeFaults } from './history-query.ts';
import type { PageState, PositionPageState, TimePageState } from './page-token.ts';
import { readByPosition, remainingAfter } from './position-pages.ts';
import {
  isForeign,
  lengthFault,
  positionAfter,
  rangeFaults,
  requiredOffsets,
  resolveRange,
  startOffsets,
  type TopicLayout,
} from './resolved-range.ts';
import { readByTime } from './time-pages.ts';

/** A page of pills. */
export interface Page {
  /** Its pills as stored, and the statement that selects them. */
  readonly rows: PillRows['rows'];
  readonly statement: PillRows['statement'];
  /** Start of the next page; undefined: this is the last one. */
  readonly next: PageState | undefined;
  /** All pills of the range up to here were returned; with a range by time, on the last page. */
  readonly position: string | undefined;
  readonly asOf: AsOf;
  /** Whether the same request always gets the same answer. */
  readonly isFinal: boolean;
}

export interface HistoryDeps {
  readonly select: Select;
  readonly readBytes: ReadBytes;
  readonly coverage: CoverageWatcher;
  readonly turns: Turns;
  readonly topic: TopicLayout;
  /** To check whether the table holds the whole log. */
  readonly logEnd: ReadLogEnd;
}

interface PageRequest<R, S extends PageState> {
  readonly range: R;
  readonly limit: number;
  /** Start of the page; undefined for the first one. */
  readonly state: S | undefined;
  readonly accountId: string;
}
type PositionRequest = PageRequest<PositionRange, PositionPageState>;
type TimeRequest = PageRequest<TimeRange, TimePageState>;

export type History = ReturnType<typeof createHistory>;

/** Reads pages of history. Refusals are returned. @throws QueryError */
export function createHistory(deps: HistoryDeps) {
  return {
    byPosition: (request: PositionRequest) => pageByPosition(deps, request),
    byTime: (request: TimeRequest) => pageByTime(deps, request),
    /** The pills of a page as ClickHouse writes them; undefined: no turn came in time. */
    bytes: ({ statement }: Pick<Page, 'statement'>, format: OutputFormat, accountId: string) => {
      const { query, params } = statement;
      const typed = { query: `SELECT ${TYPED_COLUMNS} ${query}`, params };
      return inTurn(deps, accountId, () => deps.readBytes(typed, format));
    },
  };
}

async function pageByPosition(
  deps: HistoryDeps,
  { range, limit, state, accountId }: PositionRequest,
): Promise<Page | Refusal> {
  const { topic, coverage: watcher } = deps;
  const { epoch } = topic;
  if (isForeign(range, topic)) return ['position_unknown', {}];
  const faults = rangeFaults(range, topic);
  if (faults.length > 0) return invalid(faults);
  // Without `until`, the range ends where the table ended at the first page.
  const frozenEnd = state?.stored ? new Map(state.stored) : undefined;
  const required: Offsets = frozenEnd ?? requiredOffsets(range, topic);
  // Waits before it takes a turn: a request that waits for the sink must not block others.
  const coverage = await watcher.reach(required, accountId);
  if (coverage === undefined) return OVERLOADED;
  if (!covers(coverage, required)) {
    return (await positionAhead(deps, required)) ?? behind(coverage, epoch);
  }
  const begins = startOffsets(range, topic);
  if (!covers(coverage, begins)) {
    const ahead = await positionAhead(deps, begins);
    if (ahead !== undefined) return ahead;
  }
  const horizon = frozenEnd ?? coverage.offsets;
  const resolved = resolveRange(range, topic, horizon);
  const tooLong = state === undefined ? lengthFault(resolved, range, topic) : [];
  if (tooLong.length > 0) return invalid(tooLong);
  const [partition = 0, offset = -1] = state?.at ?? [];
  const remaining = remainingAfter(resolved.partitionRanges, { partition, offset });
  const request = { epoch, symbol: range.symbol, partitionRanges: remaining, limit };
  const page = await inTurn(deps, accountId, () => readByPosition(deps.select, request));
  if (page === undefined) return OVERLOADED;
  const { rows, statement, at } = page;
  const next: PositionPageState | undefined = at && {
    at: [at.partition, at.offset],
    stored: range.until === undefined ? [...horizon] : null,
  };
  return {
    ...{ rows, statement },
    next,
    position: formatPosition(epoch, positionAfter(resolved, at)),
    asOf: await asOfNow(deps, coverage),
    isFinal: range.until !== undefined,
  };
}

async function pageByTime(
  deps: HistoryDeps,
  { range, limit, state, accountId }: TimeRequest,
): Promise<Page | Refusal> {
  const { epoch, partitionOf } = deps.topic;
  const now = nowMicros();
  const tooLong = timeRangeFaults(range, now);
  if (tooLong.length > 0 && state === undefined) return invalid(tooLong);
  const coverage = await deps.coverage.now();
  const asOf = state?.asOf ?? (await asOfNow(deps, coverage));
  const position = parsePosition(asOf.position);
  // A page from a former log: its offsets cannot be compared with offsets of this log.
  if (position?.epoch !== epoch) return PAGE_UNKNOWN;
  const offsets = new Map(
    range.symbols.map(partitionOf).map((p) => [p, position.offsets.get(p) ?? -1] as const),
  );
  // If the table was rebuilt since the first page, pills that are not restored yet would be missing.
  if (!covers(coverage, offsets)) return behind(coverage, epoch);
  const from = state?.from ?? startOf(range, now);
  const request = { ...range, from, limit, key: state?.key, known: { epoch, offsets } };
  const page = await inTurn(deps, accountId, () => readByTime(deps.select, request));
  if (page === undefined) return OVERLOADED;
  const { rows, statement, key } = page;
  return {
    ...{ rows, statement },
    next: key && { key, asOf, ...(range.from === undefined && { from }) },
    position: key === undefined ? asOf.position : undefined,
    asOf,
    isFinal: false,
  };
}

async function asOfNow({ topic, logEnd }: HistoryDeps, coverage: TableCoverage): Promise<AsOf> {
  const isWholeLog = coversLog(coverage, await logEnd());
  return asOfBody(topic.epoch, coverage, isWholeLog, nowMicros());
}

async function inTurn<T>(
  { turns }: HistoryDeps,
  accountId: string,
  read: () => Promise<T>,
): Promise<T | undefined> {
  const leave = await turns.begin(accountId);
  if (leave === undefined) return undefined;
  try {
    return await read();
  } finally {
    leave();
  }
}

/** The page does not belong to this range, or no longer does. */
export const PAGE_UNKNOWN: Refusal = invalid([parameterFault('page', 'page_unknown', PAGE_HINT)]);
const OVERLOADED: Refusal = ['overloaded', { retry_after_s: 1 }];

async function positionAhead(deps: HistoryDeps, asked: Offsets): Promise<Refusal | undefined> {
  const end = await endBefore(asked, deps.logEnd);
  return end && ['position_ahead', { position: formatPosition(deps.topic.epoch, end) }];
}

function behind({ offsets }: TableCoverage, epoch: string): Refusal {
  return ['history_behind', { position: formatPosition(epoch, offsets), retry_after_s: 1 }];
}

function invalid(errors: readonly ParameterFault[]): Refusal {
  return ['parameter_invalid', { errors }];
}
