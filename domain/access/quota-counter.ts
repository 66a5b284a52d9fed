import type { Log } from '../../lib/log/log.ts';
import { backoffMs } from '../../lib/timing/backoff.ts';
import type { Allowance, MeteredCall, MeterVerdict } from './account-access.ts';
import { answerCalls, type CallQueue, refuseCalls } from './call-queue.ts';
import { createDailyUsageCache } from './daily-usage-cache.ts';
import { type CountEntry, createPendingCounts, takeFirst } from './pending-counts.ts';
import type { Statements } from './statements.ts';
import type { UsageWriter } from './usage-writer.ts';

/** Calls that wait for an answer. Beyond that, calls are `unavailable` at once. */
const CALLS_HELD_MAX = 20_000;
/** Accounts per statement, which locks their rows. The remaining ones go with the next statement. */
const ACCOUNTS_MAX = 1_000;
/** A call is answered this long after its arrival, if only with `unavailable` … */
const DEADLINE_MS = 1_000;
/** … or slightly later: every statement gets at least this long. */
const STATEMENT_MIN_MS = 200;
/** How often counts that no caller waits for are sent. */
const COUNT_INTERVAL_MS = 250;
/** Delay between two checks whether PostgreSQL is available again. */
const PROBE = { firstMs: 50, maxMs: 1_000 };

const TAKE = 'SELECT item, granted, used, day, reset_s FROM take_calls($1, $2, $3)';

interface Batch {
  readonly queues: readonly (readonly [accountId: string, queue: CallQueue])[];
  readonly counts: readonly CountEntry[];
  /** Arrival of the first call. */
  readonly oldestMs: number;
  /** The calls of this batch were answered `unavailable`. */
  abandoned: boolean;
}

interface Row {
  /** Index in the arrays, from 1. */
  readonly item: number;
  readonly granted: number;
  readonly used: string;
  readonly day: string;
  readonly reset_s: number;
}

/**
 * Counts calls per UTC day, exactly over all processes, over a connection of its own. One statement is in
 * flight at a time; it carries the calls of all accounts that waited when it was sent, and the next is
 * sent when it returns. There are no leases: calls that one process does not use remain available to the
 * others. Not a `GroupCommit`: waiting calls are merged by account, and an outage answers them at once.
 */
export class QuotaCounter {
  readonly #statements: Statements;
  readonly #usage: UsageWriter;
  readonly #log: Log;
  readonly #deadlineMs: number;
  readonly #cache = createDailyUsageCache();
  readonly #counts = createPendingCounts();
  #queues = new Map<string, CallQueue>();
  /** Arrival of the first call in `#queues`. */
  #oldestMs = 0;
  /** Calls waiting or in flight. */
  #callsHeld = 0;
  #countsDue = false;
  #countTimer: NodeJS.Timeout | undefined;
  #inFlight: Promise<void> | undefined;
  #sendScheduled = false;
  /** The last statement failed: calls are refused at once until a probe succeeds. */
  #isSuspended = false;
  #probes = 0;
  #probeTimer: NodeJS.Timeout | undefined;
  /** No more calls are accepted. */
  #closed = false;
  /** No more statements are sent. */
  #ended = false;

  constructor(
    statements: Statements,
    usage: UsageWriter,
    log: Log,
    deadlineMs: number = DEADLINE_MS,
  ) {
    this.#statements = statements;
    this.#usage = usage;
    this.#log = log;
    this.#deadlineMs = deadlineMs;
    // Connects now, so that the first call does not have to wait for it.
    this.#send({ queues: [], counts: [], oldestMs: performance.now(), abandoned: false });
  }

  /** Counts a call of an account with a daily limit. @param nowMs `performance.now()` */
  take(
    call: MeteredCall,
    limit: number,
    burst: Allowance,
    nowMs: number,
  ): MeterVerdict | Promise<MeterVerdict> {
    const exhausted = this.#cache.exhausted(call.account.id, limit, nowMs);
    if (exhausted !== undefined) return { kind: 'quota_exceeded', burst, ...exhausted };
    if (this.#isSuspended || this.#closed || this.#callsHeld >= CALLS_HELD_MAX) {
      return { kind: 'unavailable', burst };
    }
    return new Promise((resolve) => {
      if (this.#queues.size === 0) this.#oldestMs = nowMs;
      let queue = this.#queues.get(call.account.id);
      if (queue === undefined) {
        queue = { limit, calls: [] };
        this.#queues.set(call.account.id, queue);
      }
      queue.limit = limit;
      queue.calls.push({ call, burst, resolve });
      this.#callsHeld += 1;
      this.#scheduleSend();
    });
  }

  /** Counts without a limit and without waiting: 1, or -1 to give a call back. */
  count({ account, keyId, endpoint }: MeteredCall, calls: 1 | -1): void {
    this.#counts.add(account.id, keyId, endpoint, calls);
    if (calls > 0) {
      this.#countSoon();
      return;
    }
    this.#cache.expire(account.id);
    this.#countsDue = true;
    this.#scheduleSend();
  }

  /** The last known count; if it is old or missing, it is refreshed in the background. */
  peek(accountId: string, limit: number, nowMs: number): Allowance {
    const { daily, isOld } = this.#cache.peek(accountId, limit, nowMs);
    if (isOld) {
      this.#counts.addTotal(accountId, 0);
      this.#countSoon();
    }
    return daily;
  }

  /** Makes one attempt to send the remaining counts, then closes the statements. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#countTimer);
    clearTimeout(this.#probeTimer);
    while (this.#inFlight !== undefined) await this.#inFlight;
    this.#isSuspended = false;
    this.#countsDue = true;
    for (this.#sendNext(); this.#inFlight !== undefined; ) await this.#inFlight;
    this.#ended = true;
    const { size, dropped } = this.#counts;
    if (size > 0 || dropped > 0) {
      this.#log.warn({ accounts: size, dropped }, 'calls were not counted before the shutdown');
    }
    await this.#statements.close();
  }

  #countSoon(): void {
    if (this.#closed) return;
    this.#countTimer ??= setTimeout(() => {
      this.#countTimer = undefined;
      this.#countsDue = true;
      this.#sendNext();
    }, COUNT_INTERVAL_MS).unref();
  }

  /** Calls of one event loop turn share a statement. */
  #scheduleSend(): void {
    if (this.#sendScheduled || this.#inFlight !== undefined) return;
    this.#sendScheduled = true;
    setImmediate(() => {
      this.#sendScheduled = false;
      this.#sendNext();
    });
  }

  #sendNext(): void {
    if (this.#inFlight !== undefined || this.#isSuspended || this.#ended) return;
    const withCounts = this.#countsDue && this.#counts.size > 0;
    if (this.#queues.size === 0 && !withCounts) return;
    const queues = takeFirst(this.#queues, ACCOUNTS_MAX);
    const counts = withCounts ? this.#counts.take(ACCOUNTS_MAX) : [];
    this.#countsDue = this.#counts.size > 0 && this.#countsDue;
    const oldestMs = queues.length > 0 ? this.#oldestMs : performance.now();
    this.#send({ queues, counts, oldestMs, abandoned: false });
  }

  #send(batch: Batch): void {
    const dueMs = batch.oldestMs + this.#deadlineMs;
    const restMs = Math.max(STATEMENT_MIN_MS, dueMs - performance.now());
    const deadline = setTimeout(() => {
      batch.abandoned = true;
      this.#suspend('PostgreSQL does not answer in time');
      this.#refuse(batch.queues);
    }, restMs);
    const accounts: string[] = [];
    const calls: number[] = [];
    const limits: (number | null)[] = [];
    for (const [accountId, queue] of batch.queues) {
      accounts.push(accountId);
      calls.push(queue.calls.length);
      limits.push(queue.limit);
    }
    for (const [accountId, count] of batch.counts) {
      accounts.push(accountId);
      calls.push(count.calls);
      limits.push(null);
    }
    this.#inFlight = this.#statements.run<Row>(TAKE, [accounts, calls, limits]).then((outcome) => {
      clearTimeout(deadline);
      this.#inFlight = undefined;
      if (outcome.kind === 'done') {
        this.#answer(batch, outcome.rows);
        if (this.#isSuspended) this.#log.info('PostgreSQL is available again: calls are counted');
        this.#isSuspended = false;
        this.#probes = 0;
      } else {
        this.#suspend('PostgreSQL is unavailable', outcome.error);
        if (!batch.abandoned) this.#refuse(batch.queues);
        // Counts that may have been applied are not sent again: better too few than too many.
        if (outcome.kind === 'undone') {
          this.#counts.restore(batch.counts);
          this.#countsDue = true;
        }
        this.#probeLater();
      }
      this.#sendNext();
    });
  }

  #answer({ queues, counts, abandoned }: Batch, rows: readonly Row[]): void {
    const nowMs = performance.now();
    for (const { item, granted, used: usedText, day, reset_s: resetS } of rows) {
      const used = Number(usedText);
      const queue = queues[item - 1];
      const [accountId, count] = counts[item - 1 - queues.length] ?? [];
      if (queue !== undefined) {
        this.#cache.record(queue[0], { used, day, resetS }, nowMs);
        if (abandoned) {
          // Calls answered `unavailable` are given back: their answer came too late.
          this.#counts.addTotal(queue[0], -granted);
          this.#countsDue = true;
        } else this.#answerQueue(queue[0], queue[1], granted, used, nowMs);
      } else if (accountId !== undefined) {
        this.#cache.record(accountId, { used, day, resetS }, nowMs);
        // Fewer calls than requested are given back only when the day has changed.
        if (granted === count!.calls) this.#usage.addTally(accountId, day, count!.tally);
      }
    }
    if (!abandoned) this.#refuse(queues);
  }

  #answerQueue(
    accountId: string,
    queue: CallQueue,
    granted: number,
    used: number,
    nowMs: number,
  ): void {
    const window = this.#cache.window(accountId, nowMs);
    this.#callsHeld -= queue.calls.length;
    for (const { call } of answerCalls(queue, granted, used, window)) {
      this.#usage.add(accountId, window.day, call.keyId, call.endpoint, 1);
    }
  }

  #refuse(queues: Iterable<readonly [string, CallQueue]>): void {
    for (const [, queue] of queues) this.#callsHeld -= refuseCalls(queue);
  }

  #suspend(why: string, error?: Error): void {
    if (!this.#isSuspended)
      this.#log.warn({ err: error }, `${why}: calls with a daily limit are refused`);
    this.#isSuspended = true;
    this.#refuse(this.#queues);
    this.#queues = new Map();
  }

  #probeLater(): void {
    if (this.#closed) return;
    const waitMs = Math.max(PROBE.firstMs / 2, backoffMs(this.#probes, PROBE));
    this.#probes += 1;
    this.#probeTimer = setTimeout(() => {
      this.#send({ queues: [], counts: [], oldestMs: performance.now(), abandoned: false });
    }, waitMs).unref();
  }
}
