import { setTimeout as sleep } from 'node:timers/promises';
import { nowMicros } from '../../lib/clock.ts';
import { createCounter, createGauge } from '../../lib/metrics.ts';
import type { Pill } from '../../schemas/pill.ts';
import type { Sender } from '../sender.ts';
import type { Market } from './market.ts';

export interface FeedOptions {
  readonly market: Market;
  readonly sender: Sender;
  readonly pillsPerS: number;
  /** Begins every id; another one for each start of the process. */
  readonly run: string;
  readonly signal: AbortSignal;
}

export interface Feed {
  /** Why the feed is not at work, else undefined. */
  trouble(): string | undefined;
  /** Resolves when the signal was aborted and the last call is answered. */
  readonly ended: Promise<void>;
}

/** Pills that wait while ingest is away; older ones are dropped, as a live generator would. */
const WAITING_MAX = 1_000;
const BATCH_MAX = 500;
const TICK_MIN_MS = 5;

const pills = createCounter({
  name: 'pillole_demo_pills_total',
  help: 'Pills of the demo market, by what became of them.',
  labelNames: ['outcome'] as const,
});
const waitingPills = createGauge({
  name: 'pillole_demo_waiting_pills',
  help: 'Pills of the demo market that are not acknowledged yet.',
});

/** Sends the market's signals at a steady rate, in order, one call at a time. */
export function startFeed(options: FeedOptions): Feed {
  const { market, sender, pillsPerS, run, signal } = options;
  let waiting: Pill[] = [];
  let made = 0;
  let trouble: string | undefined = 'nothing acknowledged yet';

  const makeDue = (elapsedMs: number) => {
    // What fell due while the process stood still (a suspended laptop) is not made up for.
    const due = Math.floor((elapsedMs / 1000) * pillsPerS);
    if (due - made > WAITING_MAX) made = due - WAITING_MAX;
    for (; made < due; made += 1) {
      const timestamp = nowMicros();
      const id = `${run}-${made}`;
      waiting.push({ id, timestamp, ...market.next(timestamp / 1000) });
    }
    const excess = waiting.length - WAITING_MAX;
    if (excess > 0) {
      waiting = waiting.slice(excess);
      pills.inc({ outcome: 'dropped' }, excess);
    }
  };

  const sendWaiting = async () => {
    const batch = waiting.slice(0, BATCH_MAX);
    waiting = waiting.slice(batch.length);
    waitingPills.set(batch.length + waiting.length);
    const { ok, replayed, refused, unknown } = await sender.send(batch);
    pills.inc({ outcome: 'ok' }, ok + replayed);
    pills.inc({ outcome: 'refused' }, refused.length);
    waitingPills.set(waiting.length + unknown.length);
    // The same pills with the same ids, before all newer ones.
    const again = new Set(unknown.map(({ index }) => index));
    waiting = [...batch.filter((_, index) => again.has(index)), ...waiting];
    trouble = refused[0]?.reason ?? unknown[0]?.reason;
  };

  const work = async () => {
    const started = performance.now();
    const tickMs = Math.max(TICK_MIN_MS, 1000 / pillsPerS);
    while (!signal.aborted) {
      makeDue(performance.now() - started);
      if (waiting.length > 0) await sendWaiting();
      const sinceTick = (performance.now() - started) % tickMs;
      await sleep(tickMs - sinceTick, undefined, { signal }).catch(() => undefined);
    }
  };
  return { trouble: () => trouble, ended: work() };
}
