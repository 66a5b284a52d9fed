import type { Log } from '../../lib/log/log.ts';
import type { Statements } from './statements.ts';

/** How often counts are written. */
const WRITE_INTERVAL_MS = 1_000;
/** Rows per statement; the remaining rows go with the next one. */
const ROWS_MAX = 10_000;
/** Counts held (day × account × key × endpoint). Beyond that, calls are only in the daily total. */
const COUNTS_HELD_MAX = 100_000;

/**
 * Also counts by hour, by the clock at the write. Rows are locked in key order, as in every statement; an
 * erased account has no usage.
 */
const UPSERT = `
  WITH counted AS (
    SELECT c.account_id, c.day, c.key_id, c.endpoint, c.calls
    FROM unnest($1::text[], $2::date[], $3::text[], $4::text[], $5::bigint[])
      AS c(account_id, day, key_id, endpoint, calls)
    JOIN accounts a ON a.id = c.account_id),
  by_hour AS (
    INSERT INTO usage_hours (account_id, hour, calls)
    SELECT account_id, date_trunc('hour', quota_now(), 'UTC'), sum(calls)
    FROM counted GROUP BY 1 ORDER BY 1
    ON CONFLICT (account_id, hour) DO UPDATE SET calls = usage_hours.calls + excluded.calls)
  INSERT INTO usage_calls (account_id, day, key_id, endpoint, calls)
  SELECT account_id, day, key_id, endpoint, calls FROM counted
  ORDER BY 1, 2, 3, 4
  ON CONFLICT (account_id, day, key_id, endpoint)
  DO UPDATE SET calls = usage_calls.calls + excluded.calls`;

/** Calls by key id, then by endpoint. */
export type Tally = Map<string, Map<string, number>>;

/** Adds calls to a tally. @returns whether this created a new count */
export function tallyCalls(tally: Tally, keyId: string, endpoint: string, calls: number): boolean {
  const endpoints = getOrAdd(tally, keyId);
  const before = endpoints.get(endpoint);
  endpoints.set(endpoint, (before ?? 0) + calls);
  return before === undefined;
}

/** Tallies by day, then by account. */
type Days = Map<string, Map<string, Tally>>;

export type UsageWriter = ReturnType<typeof createUsageWriter>;

/**
 * Writes the breakdown of the daily totals by key and endpoint, about once a second. While PostgreSQL is
 * unavailable, the counts wait here; counts of a statement whose answer was lost are dropped rather than
 * counted twice. Not a `GroupCommit`: calls are merged by key and endpoint while they wait.
 */
export function createUsageWriter(statements: Statements, log: Log) {
  let days: Days = new Map();
  let held = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;
  let closed = false;

  /** @param day `YYYY-MM-DD`, the day that the calls were counted for */
  function add(account: string, day: string, key: string, endpoint: string, calls: number): void {
    const isFull = held >= COUNTS_HELD_MAX;
    if (isFull && days.get(day)?.get(account)?.get(key)?.has(endpoint) !== true) {
      dropped += calls;
      return;
    }
    const tally: Tally = getOrAdd(getOrAdd(days, day), account);
    if (tallyCalls(tally, key, endpoint, calls)) held += 1;
    schedule();
  }

  function schedule(): void {
    if (timer !== undefined || writing !== undefined || closed) return;
    timer = setTimeout(() => {
      timer = undefined;
      writing = write().finally(() => {
        writing = undefined;
        if (held > 0) schedule();
      });
    }, WRITE_INTERVAL_MS);
    timer.unref();
  }

  async function write(): Promise<void> {
    if (dropped > 0) log.warn({ calls: dropped }, 'calls are only in the daily totals');
    dropped = 0;
    const rows = rowsOf(days);
    days = new Map();
    held = 0;
    for (let from = 0; from < rows.length; from += ROWS_MAX) {
      const part = rows.slice(from, from + ROWS_MAX);
      const columns = [0, 1, 2, 3, 4].map((column) => part.map((row) => row[column]));
      const outcome = await statements.run(UPSERT, columns);
      if (outcome.kind === 'done') continue;
      log.warn({ err: outcome.error, outcome: outcome.kind }, 'usage was not written');
      const retryFrom = outcome.kind === 'undone' ? from : from + ROWS_MAX;
      for (const row of rows.slice(retryFrom)) add(...row);
      return;
    }
  }

  return {
    add,
    addTally(account: string, day: string, tally: Tally): void {
      for (const [key, endpoints] of tally)
        for (const [endpoint, calls] of endpoints) add(account, day, key, endpoint, calls);
    },
    /** Makes one attempt to write the remaining counts, then closes the statements. */
    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      await writing;
      await write();
      await statements.close();
    },
  };
}

function rowsOf(days: Days) {
  const rows: [account: string, day: string, key: string, endpoint: string, calls: number][] = [];
  for (const [day, accounts] of days)
    for (const [account, tally] of accounts)
      for (const [key, endpoints] of tally)
        for (const [endpoint, calls] of endpoints)
          if (calls !== 0) rows.push([account, day, key, endpoint, calls]);
  return rows;
}

function getOrAdd<K, V>(maps: Map<string, Map<K, V>>, name: string): Map<K, V> {
  let map = maps.get(name);
  if (map === undefined) {
    map = new Map();
    maps.set(name, map);
  }
  return map;
}
