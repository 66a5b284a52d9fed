import type { Log } from '../../lib/log/log.ts';
import { backoffMs } from '../../lib/timing/backoff.ts';
import type { Allowance, DeskAccess, MeteredCall, MeterVerdict } from './account-access.ts';
import { answerCalls, type CallQueue, type ReachedLimit, refuseCalls } from './call-queue.ts';
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

const TAKE =
  'SELECT item, granted, used, day, reset_s, desk_used FROM take_calls($1, $2, $3, $4, $5)';

interface Batch {
  readonly queues: readonly (readonly [counter: string, queue: CallQueue])[];
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
  readonly desk_used: string | null;
}

/** Names what a call counts for: an account, or an account and one of its desks. */
function counterOf(accountId: string, deskId: string | undefined): string {
  return deskId === undefined ? accountId : `${accountId} ${deskId}`;
}

function partsOf(counter: string): readonly [accountId: string, deskId: string | undefined] {
  const [accountId = '', deskId] = counter.split(' ');
  return [accountId, deskId];
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

  /**
   * Counts a call of an account or desk with a daily limit.
   * @param limit of the account; undefined = none
   * @param nowMs `performance.now()`
   */
  take(
    call: MeteredCall,
    limit: number | undefined,
    burst: Allowance,
    nowMs: number,
  ): MeterVerdict | Promise<MeterVerdict> {
    const { account, desk } = call;
    for (const [of, id, most] of [
      ['account', account.id, limit],
      ['desk', desk?.id, desk?.callsPerDay],
    ] as const) {
      if (id === undefined || most === undefined) continue;
      const exhausted = this.#cache.exhausted(id, most, nowMs);
      if (exhausted !== undefined) return { kind: 'quota_exceeded', of, burst, ...exhausted };
    }
    if (this.#isSuspended || this.#closed || this.#callsHeld >= CALLS_HELD_MAX) {
      return { kind: 'unavailable', burst };
    }
    return new Promise((resolve) => {
      if (this.#queues.size === 0) this.#oldestMs = nowMs;
      const counter = counterOf(account.id, desk?.id);
      let queue = this.#queues.get(counter);
      if (queue === undefined) {
        queue = { limit, deskLimit: undefined, calls: [] };
        this.#queues.set(counter, queue);
      }
      queue.limit = limit;
      queue.deskLimit = desk?.callsPerDay;
      queue.calls.push({ call, burst, resolve });
      this.#callsHeld += 1;
      this.#scheduleSend();
    });
  }

  /** Counts without a limit and without waiting: 1, or -1 to give a call back. */
  count({ account, desk, keyId, endpoint }: MeteredCall, calls: 1 | -1): void {
    this.#counts.add(counterOf(account.id, desk?.id), keyId, endpoint, calls);
    if (calls > 0) {
      this.#countSoon();
      return;
    }
    this.#cache.expire(account.id);
    if (desk !== undefined) this.#cache.expire(desk.id);
    this.#countsDue = true;
    this.#scheduleSend();
  }

  /**
   * The last known count of the limit that is reached first; if it is old or missing, it is
   * refreshed in the background. @returns undefined = neither account nor desk has a limit
   */
  peek(
    accountId: string,
    limit: number | undefined,
    desk: DeskAccess | undefined,
    nowMs: number,
  ): Allowance | undefined {
    const known = [
      ...(limit === undefined ? [] : [this.#cache.peek(accountId, limit, nowMs)]),
      ...(desk?.callsPerDay === undefined
        ? []
        : [this.#cache.peek(desk.id, desk.callsPerDay, nowMs)]),
    ];
    if (known.some(({ isOld }) => isOld)) {
      this.#counts.addTotal(counterOf(accountId, desk?.id), 0);
      this.#countSoon();
    }
    return known.map(({ daily }) => daily).sort((a, b) => a.remaining - b.remaining)[0];
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
    this.#inFlight = this.#statements.run<Row>(TAKE, columnsOf(batch)).then((outcome) => {
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
    for (const row of rows) {
      const { item, granted, day, reset_s: resetS } = row;
      const queue = queues[item - 1];
      const count = counts[item - 1 - queues.length];
      const [counter] = queue ?? count ?? [];
      if (counter === undefined) continue;
      const [accountId, deskId] = partsOf(counter);
      const of = { day, resetS };
      this.#cache.record(accountId, { ...of, used: Number(row.used) }, nowMs);
      if (deskId !== undefined) {
        this.#cache.record(deskId, { ...of, used: Number(row.desk_used) }, nowMs);
      }
      if (queue === undefined) {
        // Fewer calls than requested are given back only when the day has changed.
        const [, { calls, tally }] = count!;
        if (granted === calls) this.#usage.addTally(accountId, day, tally);
      } else if (abandoned) {
        // Calls answered `unavailable` are given back: their answer came too late.
        this.#counts.addTotal(counter, -granted);
        this.#countsDue = true;
      } else this.#answerQueue(accountId, queue[1], row, nowMs);
    }
    if (!abandoned) this.#refuse(queues);
  }

  #answerQueue(accountId: string, queue: CallQueue, row: Row, nowMs: number): void {
    const window = this.#cache.window(accountId, nowMs);
    this.#callsHeld -= queue.calls.length;
    for (const { call } of answerCalls(queue, row.granted, reachedBy(queue, row), window)) {
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

/** The arguments of `TAKE`. */
function columnsOf({ queues, counts }: Batch): readonly unknown[] {
  const items = [
    ...queues.map(([counter, { calls, limit, deskLimit }]) => {
      return { counter, calls: calls.length, limit, deskLimit };
    }),
    ...counts.map(([counter, { calls }]) => ({
      counter,
      calls,
      limit: undefined,
      deskLimit: undefined,
    })),
  ];
  return [
    items.map(({ counter }) => partsOf(counter)[0]),
    items.map(({ calls }) => calls),
    items.map(({ limit }) => limit ?? null),
    items.map(({ counter }) => partsOf(counter)[1] ?? null),
    items.map(({ deskLimit }) => deskLimit ?? null),
  ];
}

/** Of the limits of an account and of its desk, the one with fewer calls left. */
function reachedBy({ limit, deskLimit }: CallQueue, row: Row): ReachedLimit {
  const none = Number.POSITIVE_INFINITY;
  const ofAccount = { of: 'account', limit: limit ?? none, used: Number(row.used) } as const;
  const ofDesk = { of: 'desk', limit: deskLimit ?? none, used: Number(row.desk_used) } as const;
  return ofDesk.limit - ofDesk.used < ofAccount.limit - ofAccount.used ? ofDesk : ofAccount;
}
