import { setTimeout as sleep } from 'node:timers/promises';
import type { Pill } from '../../schemas/pill.ts';
import type { Sender } from '../sender.ts';
import { type PillMaking, quotePill } from './quote-pill.ts';
import { type Quote, readQuotes } from './quotes.ts';
import { dueBatches, type PaceClock, type Schedule } from './schedule.ts';

/** Counts of a run, updated while it is in progress. */
export interface Tally {
  /** Rows with a known outcome, or given up after all attempts. */
  sent: number;
  ok: number;
  replayed: number;
  refused: number;
  unknown: number;
  /** The first distinct reasons, each with its first line and its count. */
  readonly reasons: Map<string, { readonly line: number; count: number }>;
}

interface ReplayOptions {
  readonly file: string;
  readonly making: PillMaking;
  readonly schedule: Schedule;
  readonly sender: Sender;
  /** Bound of rows in one call. */
  readonly batchMax: number;
  /** Concurrent calls; with more than one, the order of a symbol's pills is lost. */
  readonly concurrency: number;
  /** Time since the start of the schedule: rows that are already due are sent at once. */
  readonly elapsedMs: number;
  /** When aborted, no more rows are sent. */
  readonly signal: AbortSignal;
  readonly tally: Tally;
}

const REASONS_MAX = 5;

export function newTally(): Tally {
  return { sent: 0, ok: 0, replayed: 0, refused: 0, unknown: 0, reasons: new Map() };
}

/**
 * Sends the quotes of a file that was surveyed before. Ends early, without an error, when aborted,
 * and when pills stay unacknowledged after all attempts, because further pills would lose the order.
 * @throws SendError when the sender is misconfigured, or any error of readQuotes
 */
export async function replay(options: ReplayOptions): Promise<void> {
  const { making, schedule, sender, signal, tally } = options;
  const inFlight = new Set<Promise<void>>();
  let failure: unknown;

  const sendBatch = async (quotes: readonly Quote[]) => {
    const pills: Pill[] = quotes.map((quote) => quotePill(quote, making));
    const result = await sender.send(pills);
    tally.sent += quotes.length;
    tally.ok += result.ok;
    tally.replayed += result.replayed;
    tally.refused += result.refused.length;
    tally.unknown += result.unknown.length;
    for (const { index, reason } of [...result.refused, ...result.unknown]) {
      const known = tally.reasons.get(reason);
      if (known !== undefined) known.count += 1;
      else if (tally.reasons.size < REASONS_MAX) {
        tally.reasons.set(reason, { line: quotes[index]?.line ?? 0, count: 1 });
      }
    }
  };
  const fail = (error: unknown) => {
    failure ??= error;
  };
  const start = (quotes: readonly Quote[]) => {
    const call = sendBatch(quotes)
      .catch(fail)
      .finally(() => inFlight.delete(call));
    inFlight.add(call);
  };

  const dueMs = (quote: Quote) => schedule.dueMs(quote.timestamp);
  const quotes = goodQuotes(options.file);
  const batches = dueBatches(quotes, dueMs, options.batchMax, runClock(options));
  try {
    for await (const batch of batches) {
      if (signal.aborted) break;
      start(batch);
      if (inFlight.size >= options.concurrency) await Promise.race(inFlight);
      if (failure !== undefined || tally.unknown > 0) break;
    }
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
  await Promise.all(inFlight);
  if (failure !== undefined) throw failure;
}

async function* goodQuotes(file: string): AsyncGenerator<Quote> {
  for await (const row of readQuotes(file)) {
    if (!row.ok) throw new Error(`Line ${row.fault.line} has changed: ${row.fault.reason}.`);
    yield row.quote;
  }
}

function runClock({ elapsedMs, signal }: ReplayOptions): PaceClock {
  const started = performance.now() - elapsedMs;
  return {
    elapsedMs: () => performance.now() - started,
    sleep: (ms) => sleep(ms, undefined, { signal }),
  };
}
