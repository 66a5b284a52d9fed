import { setTimeout as sleep } from 'node:timers/promises';
import {
  createCounter,
  createGauge,
  createHistogram,
  LATENCY_BUCKETS_S,
} from '../../lib/metrics/metrics.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import type { Pill } from '../../schemas/pill.ts';
import type { Sender } from '../sender.ts';
import type { Market } from './market.ts';

/**
 * While ingest is away, the pills of this period wait (at least 1,000 of a slow market); older ones
 * are dropped, as in a live generator. After a pause of the process, at most this period is made up.
 */
const WAIT_S_MAX = 30;
const BATCH_MAX = 500;
const TICK_MS = 5;

const pills = createCounter({
  name: 'pillole_demo_pills_total',
  help: 'Pills of the demo market, by outcome.',
  labelNames: ['outcome'] as const,
});
const waitingPills = createGauge({
  name: 'pillole_demo_waiting_pills',
  help: 'Pills of the demo market that are not acknowledged yet.',
});
const callSeconds = createHistogram({
  name: 'pillole_demo_call_seconds',
  help: 'Time from sending a batch of the demo market to its answer, retries included.',
  buckets: LATENCY_BUCKETS_S,
});

/** Sends the market's signals when each is due, in order, one call at a time. */
export function startFeed({
  market,
  marketStateOf,
  sender,
  pillsPerS,
  run,
  signal,
}: {
  readonly market: Market;
  /** @param epochMs Unix ms */
  readonly marketStateOf: (symbol: string, epochMs: number) => string;
  readonly sender: Sender;
  readonly pillsPerS: number;
  /** Prefix of every id; different for each start of the process. */
  readonly run: string;
  readonly signal: AbortSignal;
}) {
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
    // Pills that fell due while the process was suspended (a sleeping laptop) are skipped.
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
    // Unacknowledged pills are sent again with the same ids, before all newer ones.
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
    /** Reason why the feed makes no progress; undefined when it does. */
    trouble: () => trouble,
    /** Counts since the start; `dropped` at the bound of waiting pills. */
    figures: () => ({ made, acknowledged, refused, dropped, waiting: waiting.length + inCall }),
    /** Resolves when the signal is aborted and the last call is answered. */
    ended: work(),
  };
}
