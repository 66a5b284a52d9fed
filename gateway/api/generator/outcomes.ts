import { databaseName } from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Select } from '../clickhouse/select.ts';
import type { Window } from '../server/time-range.ts';

/** What became of the pills of one source in one hour. */
export interface HourOutcomes {
  /** Start of the hour. */
  readonly hour: Micros;
  readonly source: string;
  /** With effect; late ones and backfill included. */
  accepted: number;
  late: number;
  backfill: number;
  /** Without effect, since the pill was known: answered ok, or a record of the log. */
  repeated: number;
  /** Refused by ingest, and rejected by the consumers of the log. */
  refused: number;
  rejected: number;
  readonly reasons: Reason[];
}

interface Reason {
  readonly channel: 'http' | 'log';
  readonly code: string;
  readonly fault: string;
  readonly count: number;
}

interface CountRow {
  readonly source: string;
  /** s since 1970 */
  readonly hour: number;
  readonly count: number;
}

type ReasonRow = CountRow & Pick<Reason, 'code' | 'fault'>;

const HOUR_US = 3_600e6;

/**
 * Reads the outcomes by hour and source, newest hour first. @param source undefined: of all
 * @throws QueryError
 */
export async function readOutcomes(
  select: Select,
  namespace: string,
  { since, until }: Window,
  source: string | undefined,
): Promise<readonly HourOutcomes[]> {
  const parameters = { since, until, source: source ?? '' };
  const between = (column: string) =>
    `${column} >= ${SINCE} AND ${column} < ${UNTIL}` +
    (source === undefined ? '' : ' AND source = {source:String}');
  const group = (column: string, more = '') =>
    `SELECT source, toUnixTimestamp(toStartOfHour(${column})) AS hour${more}`;
  const [accepted, repeats, counted, rejected] = await Promise.all([
    select<CountRow & { late_count: number; backfill_count: number }>(
      `${group('received_at', ', count() AS count, countIf(late) AS late_count')},
              countIf(backfill) AS backfill_count
       FROM ${databaseName(namespace)}.pills FINAL
       WHERE ${between('received_at')} AND timestamp < ${UNTIL} + INTERVAL 5 MINUTE
       GROUP BY source, hour`,
      parameters,
    ),
    select<CountRow>(
      `${group('received_at', ', count() AS count')} FROM repeats FINAL
       WHERE ${between('received_at')}
         AND concat(epoch, ':', toString(partition), '-', toString(offset)) NOT IN
             (SELECT origin FROM rejected WHERE channel = 'log' AND code = 'id_conflict'
                AND at >= ${SINCE} - INTERVAL 1 HOUR AND at < ${UNTIL} + INTERVAL 1 HOUR)
       GROUP BY source, hour`,
      parameters,
    ),
    select<ReasonRow>(
      `${group('since', ', code, fault, sum(refusal_counts.count) AS count')}
       FROM refusal_counts FINAL
       WHERE ${between('since')} GROUP BY source, hour, code, fault`,
      parameters,
    ),
    select<ReasonRow>(
      `${group('at', ', code, fault, count() AS count')} FROM rejected FINAL
       WHERE channel = 'log' AND ${between('at')} GROUP BY source, hour, code, fault`,
      parameters,
    ),
  ]);
  const rows = new Map<string, HourOutcomes>();
  const rowOf = ({ source: name, hour }: CountRow) => {
    const key = `${hour} ${name}`;
    const row = rows.get(key) ?? emptyHour(hour * 1e6, name);
    rows.set(key, row);
    return row;
  };
  for (const one of accepted) {
    const { count, late_count, backfill_count } = one;
    Object.assign(rowOf(one), { accepted: count, late: late_count, backfill: backfill_count });
  }
  for (const one of repeats) rowOf(one).repeated += one.count;
  const addReason = (channel: Reason['channel'], one: ReasonRow) => {
    const row = rowOf(one);
    const { code, fault, count } = one;
    row[channel === 'http' ? 'refused' : 'rejected'] += count;
    row.reasons.push({ channel, code, fault, count });
  };
  for (const one of counted) {
    if (one.code === 'replayed') rowOf(one).repeated += one.count;
    else addReason('http', one);
  }
  for (const one of rejected) addReason('log', one);
  for (const { reasons } of rows.values()) reasons.sort((a, b) => b.count - a.count);
  return [...rows.values()].sort((a, b) => b.hour - a.hour || (a.source < b.source ? -1 : 1));
}

const SINCE = "fromUnixTimestamp64Micro({since:Int64}, 'UTC')";
const UNTIL = "fromUnixTimestamp64Micro({until:Int64}, 'UTC')";

function emptyHour(hour: Micros, source: string): HourOutcomes {
  const none = { accepted: 0, late: 0, backfill: 0, repeated: 0, refused: 0, rejected: 0 };
  return { hour, source, ...none, reasons: [] };
}

/** The beginning of the hour of a time. */
export const startOfHour = (at: Micros): Micros => at - (at % HOUR_US);

/** A refused pill, or one of a sample of them. */
export interface RefusedPill {
  readonly at: Micros;
  readonly origin: string;
  readonly channel: 'http' | 'log';
  readonly source: string;
  readonly code: string;
  readonly fault: string;
  readonly reason: string;
  readonly body: string;
  readonly body_bytes: number;
}

/** Place of a row in the list. */
export interface RefusedKey {
  readonly at: Micros;
  readonly origin: string;
}

/** Reads refused pills, newest first. @throws QueryError */
export async function readRefused(
  select: Select,
  of: {
    readonly source: string | undefined;
    readonly code: string | undefined;
    readonly channel: string | undefined;
    readonly before: RefusedKey | undefined;
    readonly limit: number;
  },
): Promise<readonly RefusedPill[]> {
  const conditions = ['true'];
  const { limit, before, ...filters } = of;
  for (const name of ['source', 'code', 'channel'] as const) {
    if (filters[name] !== undefined) conditions.push(`${name} = {${name}:String}`);
  }
  if (before !== undefined) {
    // The sort order of the table can use only the first condition.
    conditions.push(`at <= ${BEFORE_AT}`, `(at, origin) < (${BEFORE_AT}, {origin:String})`);
  }
  const parameters = { ...filters, before_at: before?.at, origin: before?.origin };
  const rows = await select<Omit<RefusedPill, 'at'> & { readonly received: Micros }>(
    `SELECT toUnixTimestamp64Micro(at) AS received, origin, channel, source, code, fault, reason,
            body, body_bytes
     FROM rejected FINAL WHERE ${conditions.join(' AND ')}
     ORDER BY at DESC, origin DESC LIMIT ${limit}`,
    Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined)),
  );
  return rows.map(({ received, ...row }) => ({ ...row, at: received }));
}

const BEFORE_AT = "fromUnixTimestamp64Micro({before_at:Int64}, 'UTC')";

const TOKEN = /^(\d{1,16})~([\w:-]{1,120})$/;

/** Token of the page that begins after this row. */
export const refusedToken = ({ at, origin }: RefusedKey): string => `${at}~${origin}`;

/** @returns undefined when the text is no token */
export function readRefusedToken(text: string): RefusedKey | undefined {
  const [, at, origin] = TOKEN.exec(text) ?? [];
  return origin === undefined ? undefined : { at: Number(at), origin };
}
