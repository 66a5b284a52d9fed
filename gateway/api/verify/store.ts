import pLimit from 'p-limit';
import type { ClickHouse } from '../../../lib/clickhouse.ts';
import type { Log } from '../../../lib/log.ts';
import type { Offsets } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { kept } from '../clickhouse/kept.ts';
import { NoAnswer, openSelect } from '../clickhouse/select.ts';
import { readStored } from '../clickhouse/stored.ts';
import { VERIFY_LIMITS } from './limits.ts';
import type { WeighedPill } from './verdict.ts';
import type { LivePill } from './window.ts';

/** A pill that history holds. */
export interface StoredPill extends WeighedPill {
  /** Of the log that its cursor belongs to. */
  readonly epoch: string;
}

/** Older pills than memory holds, in ClickHouse. Everything rejects with `NoAnswer` alone. */
export interface Store {
  /**
   * The last live pills of a symbol that stand before an offset of its partition, oldest first.
   * Rejects too where the sink has not come so far.
   */
  older(symbol: string, partition: number, before: number, max: number): Promise<LivePill[]>;
  /** Pills with an id, of one symbol or of all; the first of each symbol. */
  find(id: string, symbol: string | undefined, max: number): Promise<StoredPill[]>;
  /** Every pill with effect up to and including these is there; at most 0.2 s old. */
  progress(): Promise<Offsets>;
  /** Receive time of the oldest pill, to a few seconds; undefined: there is none. */
  oldest(): Promise<Micros | undefined>;
  /** The first timestamp of each symbol. */
  firsts(symbols: readonly string[]): Promise<Map<string, Micros>>;
}

/** As ClickHouse answers them. */
interface Times {
  readonly sent: Micros;
  readonly received: Micros;
}

/** Places at the beginning of a partition among which its oldest pill is looked for. */
const FIRST_PLACES = 100;

export function openStore(options: {
  readonly clickhouse: ClickHouse;
  readonly epoch: string;
  readonly log: Log;
}): Store {
  const { clickhouse, epoch, log } = options;
  const turns = pLimit(VERIFY_LIMITS.statementsMax);
  const run = openSelect(clickhouse, log, {
    ...{ name: 'verify', bounds: VERIFY_LIMITS },
    settings: { max_threads: 2, optimize_read_in_order: 1 },
  });
  const select = async <T>(query: string, parameters: Readonly<Record<string, unknown>> = {}) => {
    if (turns.pendingCount >= VERIFY_LIMITS.statementsWaitingMax) {
      throw new NoAnswer('busy', 'too many statements wait');
    }
    // The wait for a turn counts too: what comes later than this is not waited for by anybody.
    const signal = AbortSignal.timeout(VERIFY_LIMITS.statementMs);
    return turns(() => run<T>(query, { epoch, ...parameters }, signal));
  };

  const progress = kept(VERIFY_LIMITS.progressMaxAgeMs, async () => {
    const { offsets } = await readStored(select, epoch);
    return offsets;
  });
  const oldest = kept(VERIFY_LIMITS.firstsMaxAgeMs, async () => {
    const first = async (where: string) => {
      const [row] = await select<{ count: number; first: number }>(
        `SELECT count() AS count, toUnixTimestamp64Micro(min(received_at)) AS first
         FROM pills ${where}`,
      );
      return row === undefined || row.count === 0 ? undefined : row.first;
    };
    // The index by place leaves little to read, however many pills there are; the whole column is
    // read only where nothing at the beginning of any partition had an effect.
    return (await first(`WHERE offset < ${FIRST_PLACES}`)) ?? first('');
  });

  return {
    progress,
    oldest,
    async older(symbol, partition, before, max) {
      const stored = (await progress()).get(partition) ?? -1;
      if (stored < before - 1) throw new NoAnswer('away', 'the sink is behind');
      // In the order of the table's key, so that it reads no more than it answers; repeats that are
      // not merged yet stand side by side.
      const rows = await select<{ spread: number; received: number }>(
        `SELECT gross_spread_percent AS spread, toUnixTimestamp64Micro(received_at) AS received
         FROM pills
         WHERE symbol = {symbol:String} AND NOT backfill
           AND (epoch != {epoch:String} OR offset < {before:UInt64})
         ORDER BY timestamp DESC, id DESC
         LIMIT 1 BY timestamp, id
         LIMIT {max:UInt32}`,
        { symbol, before, max },
      );
      return rows.reverse().map(({ spread, received }) => ({ spread, receivedAt: received }));
    },
    async find(id, symbol, max) {
      const rows = await select<Omit<StoredPill, 'timestamp' | 'received_at'> & Times>(
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
        ...{ ...pill, timestamp: sent, received_at: received },
      }));
    },
    async firsts(symbols) {
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
