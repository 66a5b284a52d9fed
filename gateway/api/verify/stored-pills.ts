import pLimit from 'p-limit';
import type { Micros } from '../../../schemas/timestamp.ts';
import { cachedFor } from '../clickhouse/cached-for.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import type { Select } from '../clickhouse/select.ts';
import { readTableCoverage } from '../clickhouse/table-coverage.ts';
import type { SubjectPill } from './facts.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { LivePill } from './symbol-window.ts';

/** A pill in history. */
export interface StoredPill extends SubjectPill {
  /** The epoch of its cursor. */
  readonly epoch: string;
}

/** The oldest pill of a partition is searched for among this many offsets at its beginning. */
const FIRST_OFFSETS = 100;

export type PillStore = ReturnType<typeof createPillStore>;

/** Reads pills in ClickHouse, older than those in the log cache. Rejects with `QueryError` only. */
export function createPillStore(unlimited: Select, epoch: string) {
  const select = limitStatements(unlimited);
  const coveredOffsets = cachedFor(VERIFY_LIMITS.coverageMaxAgeMs, async () => {
    const { offsets } = await readTableCoverage(select, epoch);
    return offsets;
  });
  return {
    /** Every pill with effect up to and including these offsets is stored; at most 0.2 s old. */
    coveredOffsets,
    /** Receive time of the oldest pill, to a few seconds; undefined if there is none. */
    oldest: cachedFor(VERIFY_LIMITS.firstsMaxAgeMs, () => readOldest(select)),
    /**
     * The last live pills of a symbol before an offset of its partition, oldest first. Also rejects
     * if the sink has not reached that offset.
     */
    async older(symbol: string, partition: number, before: number, max: number) {
      const covered = (await coveredOffsets()).get(partition) ?? -1;
      if (covered < before - 1) throw new QueryError('unavailable', 'the sink is behind');
      const rows = await select<LivePill>(OLDER, { epoch, symbol, before, max });
      return rows.reverse();
    },
    /** Pills with an id, of one symbol or of all; the first pill of each symbol. */
    find: (id: string, symbol: string | undefined, max: number) =>
      findById(select, id, symbol, max),
    /** The first timestamp of each symbol. */
    async firsts(symbols: readonly string[]): Promise<Map<string, Micros>> {
      if (symbols.length === 0) return new Map();
      const rows = await select<{ symbol: string; first: number }>(
        `SELECT symbol, toUnixTimestamp64Micro(min(timestamp)) AS first FROM pills
         WHERE symbol IN {symbols:Array(String)} GROUP BY symbol`,
        { symbols },
      );
      return new Map(rows.map(({ symbol, first }) => [symbol, first]));
    },
  };
}

/** Runs a bounded number of statements at a time; the others wait, also a bounded number. */
function limitStatements(select: Select): Select {
  const limit = pLimit(VERIFY_LIMITS.statementsMax);
  return async <T>(query: string, parameters: Readonly<Record<string, unknown>> = {}) => {
    if (limit.pendingCount >= VERIFY_LIMITS.statementsWaitingMax) {
      throw new QueryError('busy', 'too many statements wait');
    }
    // The timeout includes the wait for a turn: after it, no request waits for the rows.
    const signal = AbortSignal.timeout(VERIFY_LIMITS.statementMs);
    return limit(() => select<T>(query, parameters, signal));
  };
}

async function readOldest(select: Select): Promise<Micros | undefined> {
  const first = async (where: string) => {
    const [row] = await select<{ count: number; first: number }>(
      `SELECT count() AS count, toUnixTimestamp64Micro(min(received_at)) AS first
       FROM pills ${where}`,
    );
    return row === undefined || row.count === 0 ? undefined : row.first;
  };
  // With the index on (partition, offset) this reads little, however many pills there are. The whole
  // column is read only if no record at the beginning of any partition had an effect.
  return (await first(`WHERE offset < ${FIRST_OFFSETS}`)) ?? first('');
}

/**
 * In the order of the table's key, so that it reads no more rows than it returns; repeats that are
 * not merged yet are adjacent.
 */
const OLDER = `
  SELECT gross_spread_percent AS spread, toUnixTimestamp64Micro(received_at) AS receivedAt
  FROM pills
  WHERE symbol = {symbol:String} AND NOT backfill
    AND (epoch != {epoch:String} OR offset < {before:UInt64})
  ORDER BY timestamp DESC, id DESC
  LIMIT 1 BY timestamp, id
  LIMIT {max:UInt32}`;

async function findById(
  select: Select,
  id: string,
  symbol: string | undefined,
  max: number,
): Promise<StoredPill[]> {
  const rows = await select<
    Omit<StoredPill, 'timestamp' | 'received_at'> & { sent: Micros; received: Micros }
  >(
    `SELECT epoch, partition, offset, id, symbol, gross_spread_percent, market_state,
            confidence, backfill, toUnixTimestamp64Micro(timestamp) AS sent,
            toUnixTimestamp64Micro(received_at) AS received
     FROM pills
     WHERE id = {id:String} ${symbol === undefined ? '' : 'AND symbol = {symbol:String}'}
     ORDER BY symbol, received_at, offset
     LIMIT 1 BY symbol
     LIMIT {max:UInt32}`,
    { id, max, ...(symbol === undefined ? {} : { symbol }) },
  );
  return rows.map(({ sent, received, ...pill }) => ({
    ...pill,
    timestamp: sent,
    received_at: received,
  }));
}
