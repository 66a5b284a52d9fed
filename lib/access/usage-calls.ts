import type { Log } from '../log.ts';
import type { Statements } from './statement.ts';

/** How often counts are written. */
const WRITE_INTERVAL_MS = 1_000;
/** Rows of one statement; the rest follows in the next. */
const ROWS_MAX = 10_000;
/** Counts held (day × account × key × endpoint). Beyond, new ones are only in the daily total. */
const COUNTS_HELD_MAX = 100_000;

/** Locked in key order, as everywhere; an account that is gone has no usage. */
const UPSERT = `
  INSERT INTO usage_calls (account_id, day, key_id, endpoint, calls)
  SELECT c.account_id, c.day, c.key_id, c.endpoint, c.calls
  FROM unnest($1::text[], $2::date[], $3::text[], $4::text[], $5::bigint[])
    AS c(account_id, day, key_id, endpoint, calls)
  JOIN accounts a ON a.id = c.account_id
  ORDER BY 1, 2, 3, 4
  ON CONFLICT (account_id, day, key_id, endpoint)
  DO UPDATE SET calls = usage_calls.calls + excluded.calls`;

/** Calls by key id, then by endpoint. */
export type Tally = Map<string, Map<string, number>>;

/** Adds calls to a tally. @returns whether a new count was made for them */
export function tallyCalls(tally: Tally, keyId: string, endpoint: string, calls: number): boolean {
  let endpoints = tally.get(keyId);
  if (endpoints === undefined) {
    endpoints = new Map();
    tally.set(keyId, endpoints);
  }
  const before = endpoints.get(endpoint);
  endpoints.set(endpoint, (before ?? 0) + calls);
  return before === undefined;
}

/** What daily totals are made of; written about once a second. */
export interface UsageCalls {
  /** @param day `YYYY-MM-DD`, the one that the calls were counted to */
  add(accountId: string, day: string, keyId: string, endpoint: string, calls: number): void;
  addTally(accountId: string, day: string, tally: Tally): void;
  /** Writes what is left, once, and ends its statements. */
  close(): Promise<void>;
}

type Row = readonly [
  accountId: string,
  day: string,
  keyId: string,
  endpoint: string,
  calls: number,
];

/**
 * Counts calls by account, day, key and endpoint. When PostgreSQL is away counts wait here; those
 * of a statement whose answer was lost are forgotten rather than counted twice.
 */
export function createUsageCalls(statements: Statements, log: Log): UsageCalls {
  let days = new Map<string, Map<string, Tally>>();
  let held = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;
  let closed = false;

  function add(account: string, day: string, key: string, endpoint: string, calls: number): void {
    let accounts = days.get(day);
    if (accounts === undefined) {
      accounts = new Map();
      days.set(day, accounts);
    }
    let tally = accounts.get(account);
    if (held >= COUNTS_HELD_MAX && tally?.get(key)?.has(endpoint) !== true) {
      dropped += calls;
      return;
    }
    if (tally === undefined) {
      tally = new Map();
      accounts.set(account, tally);
    }
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

  function takeAll(): Row[] {
    const rows: Row[] = [];
    for (const [day, accounts] of days)
      for (const [account, tally] of accounts)
        for (const [key, endpoints] of tally)
          for (const [endpoint, calls] of endpoints)
            if (calls !== 0) rows.push([account, day, key, endpoint, calls]);
    days = new Map();
    held = 0;
    return rows;
  }

  async function write(): Promise<void> {
    if (dropped > 0) log.warn({ calls: dropped }, 'calls are in the daily totals alone');
    dropped = 0;
    const rows = takeAll();
    for (let from = 0; from < rows.length; from += ROWS_MAX) {
      const part = rows.slice(from, from + ROWS_MAX);
      const columns = [0, 1, 2, 3, 4].map((column) => part.map((row) => row[column]));
      const outcome = await statements.run(UPSERT, columns);
      if (outcome.kind === 'done') continue;
      log.warn({ err: outcome.error, outcome: outcome.kind }, 'usage was not written');
      const again = outcome.kind === 'undone' ? from : from + ROWS_MAX;
      for (const row of rows.slice(again)) add(...row);
      return;
    }
  }

  return {
    add,
    addTally(account, day, tally) {
      for (const [key, endpoints] of tally)
        for (const [endpoint, calls] of endpoints) add(account, day, key, endpoint, calls);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      await writing;
      await write();
      await statements.close();
    },
  };
}
