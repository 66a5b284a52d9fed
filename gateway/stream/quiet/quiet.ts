import { createCadences, lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import { generatorState } from '../../../domain/market/quiet/generator-state.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Subscriber } from '../hub/subscriber.ts';
import type { Limits } from '../limits.ts';
import type { LatestPills } from '../log/latest-pills.ts';
import { ALL_SYMBOLS, CHAOS_SYMBOL } from '../protocol/subscription.ts';
import { generatorSilentFrame } from './quiet-frames.ts';
import { createQuietNotifier } from './quiet-notifier.ts';
import { createQuietTracker } from './quiet-tracker.ts';

/** Reports why no pills arrive: `quiet` frames, and the generator's state in heartbeats. */
export type QuietNotices = ReturnType<typeof createQuiet>;

export interface QuietOptions {
  readonly markets: Markets;
  readonly symbolsMax: number;
  readonly limits: Limits;
  readonly nowMicros: () => Micros;
  readonly schedule: (turn: () => void, delayMs: number) => void;
  /** Whether pills can arrive: the log is reachable and read to its end. */
  readonly isReceiving: () => boolean;
  readonly subscribersNaming: (symbol: string) => Iterable<Subscriber>;
  readonly wildcardSubscribers: () => Iterable<Subscriber>;
  /** Sends a frame to all connections. */
  readonly broadcast: (frame: Buffer) => void;
}

/** Creates the notices. They work in turns, so that pills are sent in between. */
export function createQuiet(options: QuietOptions) {
  const { limits, nowMicros, isReceiving, wildcardSubscribers } = options;
  // The pills of `TEST:CHAOS` do not pass through `note`.
  const subscribersNaming = (symbol: string) =>
    symbol === CHAOS_SYMBOL ? [] : options.subscribersNaming(symbol);
  // One slot more, for the generator as a whole.
  const cadences = createCadences(options.symbolsMax + 1);
  const tracker = createQuietTracker({
    cadences,
    markets: options.markets,
    checksPerTurn: limits.quietChecksPerTurn,
    onChange: (state) => notifier.onChange(state),
    onGroup: (group) => notifier.onGroup(group),
  });
  const notifier = createQuietNotifier({
    tracker,
    subscribersNaming,
    wildcardSubscribers,
    framesPerTurn: limits.quietFramesPerTurn,
    summaryMs: limits.quietSummaryMs,
  });
  const generator = createGeneratorWatch(options.broadcast, (now) => ({
    lateAfterMs: lateAfterMs(cadences.medianMs(ALL_SYMBOLS)),
    isInSession: tracker.isInSession(now / 1000),
  }));

  const turns = createTurns(options.schedule, () => {
    const nowMs = nowMicros() / 1000;
    const checksLeft = tracker.turn(nowMs, isReceiving());
    const framesLeft = notifier.turn(nowMs, checksLeft === 0);
    if (checksLeft > 0 || framesLeft) turns.request(limits.quietTurnMs);
  });

  return {
    generator: generator.state,
    /** Takes the known symbols, once, before the first tick. */
    seed(latestPills: Pick<LatestPills, 'rows'>) {
      for (const { pill, receivedAt } of latestPills.rows()) {
        tracker.seed(pill.symbol, receivedAt);
        if (!isTestSymbol(pill.symbol)) generator.note(receivedAt);
      }
    },
    /** Notes a live pill from before the start, for the cadence of its symbol. */
    warm: cadences.note,
    /** Takes new pills, which `latestPills` already has. Costs two lookups per pill. */
    note(pills: readonly EffectivePill[]) {
      for (const { symbol, received_at: receivedAt, backfill } of pills) {
        // Backfill shows that the generator is alive, not that the signal is fresh.
        if (!backfill) tracker.note(symbol, receivedAt);
        if (!isTestSymbol(symbol)) generator.note(receivedAt);
      }
      const last = generator.lastReceivedAt();
      if (last !== undefined) cadences.note(ALL_SYMBOLS, last);
    },
    onSubscribed(subscriber: Subscriber, symbol: string) {
      if (symbol === CHAOS_SYMBOL) return;
      notifier.onSubscribed(subscriber, symbol);
      turns.request(0);
    },
    /** Must be called once per second. */
    tick() {
      generator.tick(nowMicros(), isReceiving());
      turns.request(0);
    },
  };
}

/** Runs a turn after each request; requests before that turn are merged. */
function createTurns(schedule: QuietOptions['schedule'], turn: () => void) {
  let isRequested = false;
  return {
    request(delayMs: number): void {
      if (isRequested) return;
      isRequested = true;
      schedule(() => {
        isRequested = false;
        turn();
      }, delayMs);
    },
  };
}

/** Watches the generator as a whole; backfill counts, test symbols do not. */
function createGeneratorWatch(
  broadcast: (frame: Buffer) => void,
  expected: (now: Micros) => {
    readonly lateAfterMs: number;
    readonly isInSession: boolean | undefined;
  },
) {
  let lastReceivedAt: Micros | undefined;
  let silentSinceMs: number | undefined;
  let receivingSince: Micros = Number.NEGATIVE_INFINITY;
  const state = (now: Micros) => generatorState({ lastReceivedAt, ...expected(now) }, now);
  return {
    state,
    lastReceivedAt: () => lastReceivedAt,
    note(receivedAt: Micros): void {
      if (lastReceivedAt === undefined || receivedAt > lastReceivedAt) lastReceivedAt = receivedAt;
    },
    tick(now: Micros, isReceiving: boolean): void {
      if (!isReceiving) receivingSince = now;
      if (!isReceiving || lastReceivedAt === undefined) return;
      const lastMs = lastReceivedAt / 1000;
      const { state: current, in_session, late_after_ms } = state(now);
      if (current === 'alive' && silentSinceMs !== undefined) {
        broadcast(generatorSilentFrame(silentSinceMs, lastMs));
        silentSinceMs = undefined;
      }
      const isTooEarly = now - receivingSince <= late_after_ms * 1000;
      if (current !== 'silent' || isTooEarly || in_session === false) return;
      if (silentSinceMs !== undefined) return;
      silentSinceMs = lastMs;
      broadcast(generatorSilentFrame(silentSinceMs, undefined));
    },
  };
}
