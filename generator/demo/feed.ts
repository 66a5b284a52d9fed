import { setTimeout as sleep } from 'node:timers/promises';
import { nowMicros } from '../../lib/clock.ts';
import {
  createCounter,
  createGauge,
  createHistogram,
  LATENCY_BUCKETS_S,
} from '../../lib/metrics.ts';
import type { Pill } from '../../schemas/pill.ts';
import type { Sender } from '../sender.ts';
import type { Market } from './market.ts';

export interface FeedOptions {
  readonly market: Market;
  /** @param epochMs Unix ms */
  readonly marketStateOf: (symbol: string, epochMs: number) => string;
  readonly sender: Sender;
  readonly pillsPerS: number;
  /** Begins every id; another one for each start of the process. */
  readonly run: string;
  readonly signal: AbortSignal;
}

/** What a feed has done since it began. */
export interface FeedFigures {
  readonly made: number;
  readonly acknowledged: number;
  readonly refused: number;
  /** Waited for longer than the feed keeps them. */
  readonly dropped: number;
  readonly waiting: number;
}

export interface Feed {
  /** Why the feed is not at work, else undefined. */
  trouble(): string | undefined;
  figures(): FeedFigures;
  /** Resolves when the signal was aborted and the last call is answered. */
  readonly ended: Promise<void>;
}

/**
 * While ingest is away the pills of so long wait (of a slow market 1,000 of them); older ones are
 * dropped, as a live generator would. Of a pause of the process itself no more than this is made up.
 */
const WAIT_S_MAX = 30;
const BATCH_MAX = 500;
const TICK_MS = 5;

const pills = createCounter({
  name: 'pillole_demo_pills_total',
  help: 'Pills of the demo market, by what became of them.',
  labelNames: ['outcome'] as const,
});
const waitingPills = createGauge({
  name: 'pillole_demo_waiting_pills',
  help: 'Pills of the demo market that are not acknowledged yet.',
});
const callSeconds = createHistogram({
  name: 'pillole_demo_call_seconds',
  help: 'From sending a batch of the demo market to its answer, with all tries.',
  buckets: LATENCY_BUCKETS_S,
});

/** Sends the market's signals when each is due, in order, one call at a time. */
export function startFeed(options: FeedOptions): Feed {
  const { market, marketStateOf, sender, pillsPerS, run, signal } = options;
  const waitingMax = Math.max(1_000, Math.ceil(WAIT_S_MAX * pillsPerS));
  let waiting: Pill[] = [];
  let inCall = 0;
  let made = 0;
  let acknowledged = 0;
  let refused = 0;
  let dropped = 0;
  let trouble: string | undefined = 'nothing acknowledged yet';
  let startedMs = performance.now();
  let next = market.next();

  const makeDue = () => {
    const elapsedS = (performance.now() - startedMs) / 1000;
    const nowMs = nowMicros() / 1000;
    // What fell due while the process stood still (a suspended laptop) is not made up for.
    const missedS = elapsedS - next.atS - WAIT_S_MAX;
    if (missedS > 0) startedMs += missedS * 1000;
    const dueS = Math.min(elapsedS, next.atS + WAIT_S_MAX);
    for (; next.atS <= dueS; next = market.next()) {
      const { atS, ...pill } = next;
      const atMs = nowMs - (dueS - atS) * 1000;
      waiting.push({
        id: `${run}-${made}`,
        timestamp: Math.round(atMs * 1000),
        market_state: marketStateOf(pill.symbol, atMs),
        ...pill,
      });
      made += 1;
    }
    const excess = waiting.length - waitingMax;
    if (excess > 0) {
      waiting = waiting.slice(excess);
      dropped += excess;
      pills.inc({ outcome: 'dropped' }, excess);
    }
  };

  const sendWaiting = async () => {
    const batch = waiting.slice(0, BATCH_MAX);
    waiting = waiting.slice(batch.length);
    inCall = batch.length;
    waitingPills.set(inCall + waiting.length);
    const stopTimer = callSeconds.startTimer();
    const sent = await sender.send(batch);
    stopTimer();
    inCall = 0;
    acknowledged += sent.ok + sent.replayed;
    refused += sent.refused.length;
    pills.inc({ outcome: 'ok' }, sent.ok + sent.replayed);
    pills.inc({ outcome: 'refused' }, sent.refused.length);
    // The same pills with the same ids, before all newer ones.
    const again = new Set(sent.unknown.map(({ index }) => index));
    waiting = [...batch.filter((_, index) => again.has(index)), ...waiting];
    waitingPills.set(waiting.length);
    trouble = sent.refused[0]?.reason ?? sent.unknown[0]?.reason;
  };

  const work = async () => {
    while (!signal.aborted) {
      makeDue();
      if (waiting.length > 0) await sendWaiting();
      if (waiting.length < BATCH_MAX) {
        await sleep(TICK_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  };
  return {
    trouble: () => trouble,
    figures: () => ({
      ...{ made, acknowledged, refused, dropped, waiting: waiting.length + inCall },
    }),
    ended: work(),
  };
}
