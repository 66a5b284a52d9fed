import { backoffMs } from '../backoff.ts';
import type { Log } from '../log.ts';
import type { Allowance, MeteredCall, Taken } from './access.ts';
import { type CallLine, dealLine, refuseLine } from './call-line.ts';
import { type CountEntry, createPendingCounts, takeFirst } from './pending-counts.ts';
import { createStandings } from './standings.ts';
import type { Statements } from './statement.ts';
import type { UsageCalls } from './usage-calls.ts';

/** Calls that wait for an answer. One more is `unavailable` at once. */
const CALLS_HELD_MAX = 20_000;
/** Accounts of one statement: it holds their rows' locks. The rest goes with the next. */
const ACCOUNTS_MAX = 1_000;
/** A call is answered so long after it arrived, if only with `unavailable` … */
const DEADLINE_MS = 1_000;
/** … or a little later: so long a statement has, however long its calls have waited for it. */
const STATEMENT_MIN_MS = 200;
/** Counts that nobody waits for are sent so often. */
const COUNT_INTERVAL_MS = 250;
/** Between two looks whether PostgreSQL is back. */
const PROBE = { firstMs: 50, maxMs: 1_000 };

const TAKE = 'SELECT item, granted, used, day, reset_s FROM take_calls($1, $2, $3)';

/** Daily counts that are exact over all processes. */
export interface Ledger {
  /** Takes a call of an account with a daily limit. @param nowMs `performance.now()` */
  take(call: MeteredCall, limit: number, burst: Allowance, nowMs: number): Taken | Promise<Taken>;
  /** Counts without asking and without waiting: 1, or -1 to give back. */
  count(call: MeteredCall, calls: 1 | -1): void;
  /** What was told last; asks in the background when that is old or nothing. */
  peek(accountId: string, limit: number, nowMs: number): Allowance;
  /** Sends what is left, once, and ends its statements. */
  close(): Promise<void>;
}

interface Batch {
  readonly lines: readonly (readonly [accountId: string, line: CallLine])[];
  readonly counts: readonly CountEntry[];
  /** When its first call arrived. */
  readonly oldestMs: number;
  /** Its callers were told `unavailable`. */
  abandoned: boolean;
}

interface Row {
  /** Place in the arrays, from 1. */
  readonly item: number;
  readonly granted: number;
  readonly used: string;
  readonly day: string;
  readonly reset_s: number;
}

/**
 * Opens the ledger over a connection of its own. One statement is in flight; it carries the calls
 * of all accounts that waited when it left, the next leaves when it is back. There are no leases:
 * what one process was not granted, another can have.
 */
export function openLedger(statements: Statements, usage: UsageCalls, log: Log): Ledger {
  return new PostgresLedger(statements, usage, log);
}

class PostgresLedger implements Ledger {
  readonly #statements: Statements;
  readonly #usage: UsageCalls;
  readonly #log: Log;
  readonly #standings = createStandings();
  readonly #counts = createPendingCounts();
  #lines = new Map<string, CallLine>();
  /** When the first of `#lines` arrived. */
  #oldestMs = 0;
  /** Calls waiting or in flight. */
  #callsHeld = 0;
  #countsDue = false;
  #countTimer: NodeJS.Timeout | undefined;
  #flight: Promise<void> | undefined;
  #leaving = false;
  /** PostgreSQL did not answer last time: calls are refused at once until a probe comes back. */
  #away = false;
  #probes = 0;
  #probeTimer: NodeJS.Timeout | undefined;
  /** No more calls. */
  #closed = false;
  /** No more statements. */
  #ended = false;

  constructor(statements: Statements, usage: UsageCalls, log: Log) {
    this.#statements = statements;
    this.#usage = usage;
    this.#log = log;
    // Connects before the first call has to wait for it.
    this.#send({ lines: [], counts: [], oldestMs: performance.now(), abandoned: false });
  }

  take(call: MeteredCall, limit: number, burst: Allowance, nowMs: number): Taken | Promise<Taken> {
    const spent = this.#standings.spent(call.account.id, limit, nowMs);
    if (spent !== undefined) return { kind: 'quota_exceeded', burst, ...spent };
    if (this.#away || this.#closed || this.#callsHeld >= CALLS_HELD_MAX) {
      return { kind: 'unavailable', burst };
    }
    return new Promise((resolve) => {
      if (this.#lines.size === 0) this.#oldestMs = nowMs;
      let line = this.#lines.get(call.account.id);
      if (line === undefined) {
        line = { limit, calls: [] };
        this.#lines.set(call.account.id, line);
      }
      line.limit = limit;
      line.calls.push({ call, burst, resolve });
      this.#callsHeld += 1;
      this.#wake();
    });
  }

  count({ account, keyId, endpoint }: MeteredCall, calls: 1 | -1): void {
    this.#counts.add(account.id, keyId, endpoint, calls);
    if (calls > 0) {
      this.#countSoon();
      return;
    }
    this.#standings.doubt(account.id);
    this.#countsDue = true;
    this.#wake();
  }

  peek(accountId: string, limit: number, nowMs: number): Allowance {
    const { daily, isOld } = this.#standings.peek(accountId, limit, nowMs);
    if (isOld) {
      this.#counts.addBare(accountId, 0);
      this.#countSoon();
    }
    return daily;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#countTimer);
    clearTimeout(this.#probeTimer);
    while (this.#flight !== undefined) await this.#flight;
    this.#away = false;
    this.#countsDue = true;
    for (this.#leave(); this.#flight !== undefined; ) await this.#flight;
    this.#ended = true;
    const { size, dropped } = this.#counts;
    if (size > 0 || dropped > 0) {
      this.#log.warn({ accounts: size, dropped }, 'calls were not counted in the end');
    }
    await this.#statements.close();
  }

  #countSoon(): void {
    if (this.#closed) return;
    this.#countTimer ??= setTimeout(() => {
      this.#countTimer = undefined;
      this.#countsDue = true;
      this.#leave();
    }, COUNT_INTERVAL_MS).unref();
  }

  /** Calls of one turn of the event loop share a statement. */
  #wake(): void {
    if (this.#leaving || this.#flight !== undefined) return;
    this.#leaving = true;
    setImmediate(() => {
      this.#leaving = false;
      this.#leave();
    });
  }

  #leave(): void {
    if (this.#flight !== undefined || this.#away || this.#ended) return;
    const withCounts = this.#countsDue && this.#counts.size > 0;
    if (this.#lines.size === 0 && !withCounts) return;
    const lines = takeFirst(this.#lines, ACCOUNTS_MAX);
    const counts = withCounts ? this.#counts.take(ACCOUNTS_MAX) : [];
    this.#countsDue = this.#counts.size > 0 && this.#countsDue;
    const oldestMs = lines.length > 0 ? this.#oldestMs : performance.now();
    this.#send({ lines, counts, oldestMs, abandoned: false });
  }

  #send(batch: Batch): void {
    const restMs = Math.max(STATEMENT_MIN_MS, batch.oldestMs + DEADLINE_MS - performance.now());
    const deadline = setTimeout(() => {
      batch.abandoned = true;
      this.#leaveOff('PostgreSQL does not answer in time');
      this.#refuse(batch.lines);
    }, restMs);
    const accounts: string[] = [];
    const calls: number[] = [];
    const limits: (number | null)[] = [];
    for (const [accountId, line] of batch.lines) {
      accounts.push(accountId);
      calls.push(line.calls.length);
      limits.push(line.limit);
    }
    for (const [accountId, count] of batch.counts) {
      accounts.push(accountId);
      calls.push(count.calls);
      limits.push(null);
    }
    this.#flight = this.#statements.run<Row>(TAKE, [accounts, calls, limits]).then((outcome) => {
      clearTimeout(deadline);
      this.#flight = undefined;
      if (outcome.kind === 'done') {
        this.#deal(batch, outcome.rows);
        if (this.#away) this.#log.info('PostgreSQL is back: calls are counted again');
        this.#away = false;
        this.#probes = 0;
      } else {
        this.#leaveOff('PostgreSQL is away', outcome.error);
        if (!batch.abandoned) this.#refuse(batch.lines);
        // What may have been counted is not sent again: rather too little than too much.
        if (outcome.kind === 'undone') {
          this.#counts.restore(batch.counts);
          this.#countsDue = true;
        }
        this.#probeLater();
      }
      this.#leave();
    });
  }

  #deal({ lines, counts, abandoned }: Batch, rows: readonly Row[]): void {
    const nowMs = performance.now();
    for (const { item, granted, used: usedText, day, reset_s: resetS } of rows) {
      const used = Number(usedText);
      const line = lines[item - 1];
      const [accountId, count] = counts[item - 1 - lines.length] ?? [];
      if (line !== undefined) {
        this.#standings.told(line[0], { used, day, resetS }, nowMs);
        if (abandoned) {
          // Callers that were told `unavailable` do not pay for an answer that came too late.
          this.#counts.addBare(line[0], -granted);
          this.#countsDue = true;
        } else this.#dealLine(line[0], line[1], granted, used, nowMs);
      } else if (accountId !== undefined) {
        this.#standings.told(accountId, { used, day, resetS }, nowMs);
        // Less was given back than asked for only when the day has turned.
        if (granted === count!.calls) this.#usage.addTally(accountId, day, count!.tally);
      }
    }
    if (!abandoned) this.#refuse(lines);
  }

  #dealLine(accountId: string, line: CallLine, granted: number, used: number, nowMs: number): void {
    const window = this.#standings.window(accountId, nowMs);
    this.#callsHeld -= line.calls.length;
    for (const { call } of dealLine(line, granted, used, window)) {
      this.#usage.add(accountId, window.day, call.keyId, call.endpoint, 1);
    }
  }

  #refuse(lines: Iterable<readonly [string, CallLine]>): void {
    for (const [, line] of lines) this.#callsHeld -= refuseLine(line);
  }

  #leaveOff(why: string, error?: Error): void {
    if (!this.#away) this.#log.warn({ err: error }, `${why}: calls with a daily limit are refused`);
    this.#away = true;
    this.#refuse(this.#lines);
    this.#lines = new Map();
  }

  #probeLater(): void {
    if (this.#closed) return;
    const waitMs = Math.max(PROBE.firstMs / 2, backoffMs(this.#probes, PROBE));
    this.#probes += 1;
    this.#probeTimer = setTimeout(() => {
      this.#send({ lines: [], counts: [], oldestMs: performance.now(), abandoned: false });
    }, waitMs).unref();
  }
}
