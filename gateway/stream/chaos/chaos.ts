import type { EffectivePill } from '../../../lib/order/judge.ts';
import { formatCursor } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Connection } from '../live/connection.ts';
import { chaosGapFrame } from '../live/frames.ts';
import type { Hub } from '../live/hub.ts';
import type { Seat } from '../live/seat.ts';
import type { ResumeDesk } from '../past/resume.ts';
import type { Outbox } from '../wire/outbox.ts';
import {
  CHAOS_CYCLE,
  CHAOS_STEP_MS,
  CHAOS_SYMBOL,
  type ChaosStep,
  chaosStepAt,
} from './chaos-schedule.ts';

/** Plays `TEST:CHAOS` to those who named it; see README.md for its schedule. */
export interface Chaos {
  /** Plays the steps that are due. Costs nothing while nobody has named the symbol. */
  tick(): void;
}

export interface ChaosOptions {
  readonly hub: Pick<Hub, 'publish' | 'flush' | 'seatsNaming'>;
  /** The first number that no partition of the log has: its cursors are taken for no other. */
  readonly partition: number;
  readonly connections: () => Iterable<Connection>;
  readonly nowMicros: () => Micros;
}

/** After a stall the steps before are left out, and told as a gap. */
const CATCH_UP_STEPS = 4;
const DRAIN_GRACE_MS = 2_000;
const RECONNECT_AFTER_MS = 500;
const RETRY_AFTER_MS = 500;

/**
 * Creates the player. Its log is the clock: step n is pill n, for every client and process alike,
 * and nothing of it is written anywhere. It knows no client but by its seat under the symbol.
 */
export function createChaos(options: ChaosOptions): Chaos {
  const { hub, partition, nowMicros } = options;
  let next: number | undefined;
  /** Those who were told where their chain begins. */
  let begun = new Set<Seat>();

  const tellGap = (seats: Iterable<Seat>, after: number | null, until: number) => {
    const afterCursor = after === null ? null : formatCursor(partition, after);
    const frame = chaosGapFrame(CHAOS_SYMBOL, afterCursor, formatCursor(partition, until));
    for (const seat of [...seats]) {
      seat.outbox.push(frame);
      if (seat.outbox.broken || seat.outbox.overflowed) seat.onOverflow();
    }
  };
  const begin = (seats: ReadonlySet<Seat>, step: number) => {
    const fresh = [...seats].filter((seat) => !begun.has(seat));
    tellGap(fresh, null, step - 1);
    begun = new Set(seats);
  };
  const playersOf = (seats: Iterable<Seat>) => {
    const outboxes = new Set<Outbox>([...seats].map(({ outbox }) => outbox));
    return [...options.connections()].filter(({ outbox }) => outboxes.has(outbox));
  };
  const play = (step: number, seats: ReadonlySet<Seat>) => {
    const kind: ChaosStep = chaosStepAt(step);
    if (kind === 'withhold') return;
    if (kind === 'gap') {
      hub.flush();
      tellGap(seats, withheldBefore(step), step - 1);
    }
    const pill = chaosPill(step, partition);
    hub.publish(kind === 'repeat' ? [chaosPill(step - 1, partition), pill] : [pill]);
    if (kind === 'drain') {
      for (const one of playersOf(seats)) one.drain(RECONNECT_AFTER_MS, DRAIN_GRACE_MS);
    } else if (kind === 'close_4000') {
      hub.flush();
      for (const one of playersOf(seats)) {
        one.beat();
        one.close('drain');
      }
    } else if (kind === 'close_4001') {
      hub.flush();
      for (const one of playersOf(seats)) {
        one.fail('slow_consumer', `${CHAOS_SYMBOL} plays a slow consumer.`, {
          retry_after_ms: RETRY_AFTER_MS,
          ...one.resumable(),
        });
      }
    }
  };

  return {
    tick() {
      const now = Math.floor(nowMicros() / 1000 / CHAOS_STEP_MS);
      let seats = new Set(hub.seatsNaming(CHAOS_SYMBOL));
      // A clock that was set back must not play the same steps again.
      if (seats.size === 0 || next === undefined || next - now > CHAOS_CYCLE) {
        next = now + 1;
        begun.clear();
        if (seats.size === 0) return;
      }
      if (now - next >= CATCH_UP_STEPS) {
        next = now;
        begun.clear();
      }
      if (next > now) return;
      begin(seats, next);
      for (; next <= now; next += 1) {
        play(next, seats);
        seats = new Set(hub.seatsNaming(CHAOS_SYMBOL));
      }
    },
  };
}

/** The desk for those who come back; it knows that nothing of the symbol can be resumed. */
export function withoutChaos(desk: ResumeDesk, partition: number): ResumeDesk {
  return {
    ...desk,
    reach(request, asker) {
      if (request?.kind !== 'position' || !request.position.offsets.has(partition)) {
        return desk.reach(request, asker);
      }
      const offsets = new Map(request.position.offsets);
      offsets.delete(partition);
      return desk.reach({ ...request, position: { ...request.position, offsets } }, asker);
    },
  };
}

/** Pill n of the symbol: the same for everybody, and never `late` but where the schedule says. */
function chaosPill(step: number, partition: number): EffectivePill {
  const receivedAt = step * CHAOS_STEP_MS * 1000;
  const late = chaosStepAt(step) === 'late';
  const timestamp = late ? receivedAt - LATE_BY_MICROS : receivedAt;
  return {
    id: `chaos-${step}`,
    timestamp,
    symbol: CHAOS_SYMBOL,
    gross_spread_percent: (step % CHAOS_CYCLE) / 100,
    market_state: 'open',
    confidence: 50,
    received_at: receivedAt,
    source: null,
    kind: null,
    ...{ partition, offset: step, order: timestamp, late, backfill: false },
    ...{ prev: step - 1, last: step },
  };
}

const LATE_BY_MICROS = 10_000_000;

/** The last step that was played before the withheld ones. */
function withheldBefore(step: number): number {
  let last = step - 1;
  while (chaosStepAt(last) === 'withhold') last -= 1;
  return last;
}
