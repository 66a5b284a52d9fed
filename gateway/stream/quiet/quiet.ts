import type { EffectivePill } from '../../../lib/order/judge.ts';
import { createCadences, lateAfterMs } from '../../../lib/signal/cadence.ts';
import { type GeneratorState, generatorState } from '../../../lib/signal/generator.ts';
import type { Markets } from '../../../lib/signal/markets.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { LIMITS } from '../limits.ts';
import type { Seat } from '../live/seat.ts';
import { EVERY_SYMBOL } from '../live/subscription.ts';
import type { Board } from '../past/board.ts';
import { createQuietDesk } from './quiet-desk.ts';
import { silentFrame } from './quiet-frames.ts';
import { createQuietWatch } from './quiet-watch.ts';

/** Says why nothing comes: `quiet` frames, and the generator's state in heartbeats. */
export interface QuietTeller {
  /** Takes what the board knows; once it does, before the first tick. */
  seed(board: Pick<Board, 'rows'>): void;
  /** A live pill from before the start was read again: it shows how often its symbol's come. */
  warm(symbol: string, receivedAt: Micros): void;
  /** Pills have come, and are on the board. Costs two look-ups for each. */
  note(pills: readonly EffectivePill[]): void;
  onSubscribed(seat: Seat, symbol: string): void;
  /** Once a second. */
  tick(): void;
  generator(now: Micros): GeneratorState;
}

export interface QuietOptions {
  readonly markets: Markets;
  readonly symbolsMax: number;
  readonly limits: Pick<
    typeof LIMITS,
    'quietChecksPerTurn' | 'quietFramesPerTurn' | 'quietTurnMs' | 'quietSummaryMs'
  >;
  readonly nowMicros: () => Micros;
  readonly schedule: (turn: () => void, delayMs: number) => void;
  /** Whether pills can come: the log is there, and read to its end. */
  readonly isHearing: () => boolean;
  readonly seatsNaming: (symbol: string) => Iterable<Seat>;
  readonly starSeats: () => Iterable<Seat>;
  readonly tellAll: (frame: Buffer) => void;
}

/** Creates the teller. The work is done in turns, so that pills go between. */
export function createQuiet(options: QuietOptions): QuietTeller {
  const { limits, markets, nowMicros, schedule, isHearing } = options;
  // One more for the generator as a whole.
  const cadences = createCadences(options.symbolsMax + 1);
  const watch = createQuietWatch({
    ...{ cadences, markets, checksPerTurn: limits.quietChecksPerTurn },
    onChange: (told) => desk.onChange(told),
    onGroup: (group) => desk.onGroup(group),
  });
  const desk = createQuietDesk({
    ...{ watch, seatsNaming: options.seatsNaming, starSeats: options.starSeats },
    ...{ framesPerTurn: limits.quietFramesPerTurn, summaryMs: limits.quietSummaryMs },
  });
  let isTurnDue = false;
  /** Of all pills, backfill too; test symbols do not show that the generator lives. */
  let lastReceivedAt: Micros | undefined;
  let silentSinceMs: number | undefined;
  let hearingSince: Micros = Number.NEGATIVE_INFINITY;

  const hear = (receivedAt: Micros) => {
    if (lastReceivedAt === undefined || receivedAt > lastReceivedAt) lastReceivedAt = receivedAt;
  };
  const turn = () => {
    const nowMs = nowMicros() / 1000;
    const checksLeft = watch.turn(nowMs, isHearing());
    const framesLeft = desk.turn(nowMs, checksLeft === 0);
    if (checksLeft > 0 || framesLeft) request(limits.quietTurnMs);
  };
  const request = (delayMs: number) => {
    if (isTurnDue) return;
    isTurnDue = true;
    schedule(() => {
      isTurnDue = false;
      turn();
    }, delayMs);
  };
  const generator = (now: Micros) =>
    generatorState(
      {
        lastReceivedAt,
        lateAfterMs: lateAfterMs(cadences.medianMs(EVERY_SYMBOL)),
        isInSession: watch.isInSession(now / 1000),
      },
      now,
    );
  const watchGenerator = (now: Micros) => {
    if (lastReceivedAt === undefined) return;
    const lastMs = lastReceivedAt / 1000;
    const { state, in_session, late_after_ms } = generator(now);
    if (state === 'alive' && silentSinceMs !== undefined) {
      options.tellAll(silentFrame(silentSinceMs, lastMs));
      silentSinceMs = undefined;
    }
    const isPatient = now - hearingSince <= late_after_ms * 1000;
    if (state !== 'silent' || isPatient || in_session === false) return;
    if (silentSinceMs !== undefined) return;
    silentSinceMs = lastMs;
    options.tellAll(silentFrame(silentSinceMs, undefined));
  };

  return {
    generator,
    seed(board) {
      for (const { pill, receivedAt } of board.rows()) {
        watch.seed(pill.symbol, receivedAt);
        if (!isTestSymbol(pill.symbol)) hear(receivedAt);
      }
    },
    warm: cadences.note,
    note(pills) {
      for (const { symbol, received_at: receivedAt, backfill } of pills) {
        // Backfill shows that the generator lives, not that its signal is fresh.
        if (!backfill) watch.note(symbol, receivedAt);
        if (!isTestSymbol(symbol)) hear(receivedAt);
      }
      if (lastReceivedAt !== undefined) cadences.note(EVERY_SYMBOL, lastReceivedAt);
    },
    onSubscribed(seat, symbol) {
      desk.onSubscribed(seat, symbol);
      request(0);
    },
    tick() {
      const now = nowMicros();
      if (isHearing()) watchGenerator(now);
      else hearingSince = now;
      request(0);
    },
  };
}
