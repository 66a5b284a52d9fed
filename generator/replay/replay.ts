import { setTimeout as sleep } from 'node:timers/promises';
import type { Pill } from '../../schemas/pill.ts';
import type { Sender } from '../sender.ts';
import { type PillMaking, quotePill } from './quote-pill.ts';
import { type Quote, readQuotes } from './quotes.ts';
import { dueBatches, type PaceClock, type Schedule } from './schedule.ts';

/** What became of a file, so far. Changes while the run goes on. */
export interface Tally {
  /** Rows whose fate is known, or was given up. */
  sent: number;
  ok: number;
  replayed: number;
  refused: number;
  unknown: number;
  /** Distinct reasons, the first ones: the line each came up at, and how often it did. */
  readonly reasons: Map<string, { readonly line: number; count: number }>;
}

export interface ReplayOptions {
  readonly file: string;
  readonly making: PillMaking;
  readonly schedule: Schedule;
  readonly sender: Sender;
  /** Rows of one call, at the most. */
  readonly batchMax: number;
  /** Calls on their way at a time; more than one gives up the order of a symbol's pills. */
  readonly concurrency: number;
  /** How long ago the schedule began: rows that were due by now go at once. */
  readonly elapsedMs: number;
  /** Aborted: send no more, tell what was sent. */
  readonly signal: AbortSignal;
  readonly tally: Tally;
}

const REASONS_MAX = 5;

export function newTally(): Tally {
  return { sent: 0, ok: 0, replayed: 0, refused: 0, unknown: 0, reasons: new Map() };
}

/**
 * Sends the quotes of a file that was surveyed before. Ends early, without an error, when asked
 * to, and when pills stay unacknowledged after all tries: more of them would only lose the order.
 * @throws SendError when the way in is wrong; what readQuotes throws.
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
  const start = (quotes: readonly Quote[]) => {
    const call = sendBatch(quotes)
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => inFlight.delete(call));
    inFlight.add(call);
  };

  const clock = runClock(options);
  const batches = dueBatches(
    goodQuotes(options.file),
    (quote) => schedule.dueMs(quote.timestamp),
    options.batchMax,
    clock,
  );
  try {
    for await (const batch of batches) {
      if (signal.aborted) break;
      start(batch);
      if (inFlight.size >= options.concurrency) await Promise.race(inFlight);
      if (failure !== undefined || tally.unknown > 0) break;
    }
  } catch (error) {
    if (!signal.aborted) failure ??= error;
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
