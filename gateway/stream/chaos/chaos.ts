import type { EffectivePill } from '../../../domain/order/judge.ts';
import { formatCursor } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { Hub } from '../hub/hub.ts';
import type { Connection } from '../hub/stream-connection.ts';
import { pushFrame, type Subscriber } from '../hub/subscriber.ts';
import { gapFrame } from '../protocol/server-frames.ts';
import { CHAOS_SYMBOL } from '../protocol/subscription.ts';
import type { Resumer } from '../replay/resume.ts';
import { CHAOS_CYCLE, CHAOS_STEP_MS, chaosStepAt } from './chaos-schedule.ts';

interface ChaosOptions {
  readonly hub: Pick<Hub, 'publish' | 'flush' | 'subscribersNaming'>;
  /** The first partition number that the log does not use, so that its cursors are unique. */
  readonly partition: number;
  readonly connections: () => Iterable<Connection>;
  readonly nowMicros: () => Micros;
}

/** After a stall of this many steps the missed steps are skipped, and reported as a gap. */
const CATCH_UP_STEPS = 4;
const DRAIN_GRACE_MS = 2_000;
const RECONNECT_AFTER_MS = 500;
const RETRY_AFTER_MS = 500;
const LATE_BY_MICROS = 10_000_000;

/**
 * Creates the feed of `TEST:CHAOS` for the clients that name it; README.md has its schedule. The
 * clock is its log: step n is pill n for every client and process, and nothing is stored. It finds
 * its clients through their subscriptions to the symbol.
 */
export function createChaos(options: ChaosOptions) {
  const { hub, partition, nowMicros } = options;
  let next: number | undefined;
  /** Subscribers that got the `gap` frame at the beginning of their chain. */
  let begun = new Set<Subscriber>();

  const begin = (subscribers: ReadonlySet<Subscriber>, step: number) => {
    const fresh = [...subscribers].filter((subscriber) => !begun.has(subscriber));
    sendGap(fresh, partition, undefined, step - 1);
    begun = new Set(subscribers);
  };

  return {
    /** Runs the steps that are due. Costs nothing while no client names the symbol. */
    tick(): void {
      const now = Math.floor(nowMicros() / 1000 / CHAOS_STEP_MS);
      let subscribers = new Set(hub.subscribersNaming(CHAOS_SYMBOL));
      // After the clock was set back the same steps must not run again.
      if (subscribers.size === 0 || next === undefined || next - now > CHAOS_CYCLE) {
        next = now + 1;
        begun.clear();
        if (subscribers.size === 0) return;
      }
      if (now - next >= CATCH_UP_STEPS) {
        next = now;
        begun.clear();
      }
      if (next > now) return;
      begin(subscribers, next);
      for (; next <= now; next += 1) {
        runStep(next, subscribers, options);
        subscribers = new Set(hub.subscribersNaming(CHAOS_SYMBOL));
      }
    },
  };
}

function runStep(
  step: number,
  subscribers: ReadonlySet<Subscriber>,
  { hub, partition, connections }: ChaosOptions,
): void {
  const kind = chaosStepAt(step);
  if (kind === 'withhold') return;
  if (kind === 'gap') {
    hub.flush();
    sendGap(subscribers, partition, lastSentBefore(step), step - 1);
  }
  const pill = chaosPill(step, partition);
  hub.publish(kind === 'repeat' ? [chaosPill(step - 1, partition), pill] : [pill]);
  if (kind !== 'drain' && kind !== 'close_4000' && kind !== 'close_4001') return;
  if (kind !== 'drain') hub.flush();
  const outboxes = new Set([...subscribers].map(({ outbox }) => outbox));
  for (const connection of [...connections()].filter(({ outbox }) => outboxes.has(outbox))) {
    if (kind === 'drain') connection.drain(RECONNECT_AFTER_MS, DRAIN_GRACE_MS);
    else if (kind === 'close_4000') {
      connection.sendHeartbeat();
      connection.close('drain');
    } else {
      connection.fail('slow_consumer', `${CHAOS_SYMBOL} simulates a slow consumer.`, {
        retry_after_ms: RETRY_AFTER_MS,
        ...connection.resumePosition(),
      });
    }
  }
}

/** No REST call returns chaos pills, so the gap has no `fill`. */
function sendGap(
  subscribers: Iterable<Subscriber>,
  partition: number,
  after: number | undefined,
  until: number,
): void {
  const missed = {
    symbol: CHAOS_SYMBOL,
    after: after === undefined ? undefined : formatCursor(partition, after),
    until: formatCursor(partition, until),
  };
  const frame = gapFrame(missed, 'chaos', undefined);
  for (const subscriber of [...subscribers]) pushFrame(subscriber, frame);
}

/** Wraps the resumer: positions of the chaos partition cannot be resumed, and are ignored. */
export function withoutChaos(resumer: Resumer, partition: number): Resumer {
  return {
    ...resumer,
    resume(request, scope) {
      if (request?.kind !== 'position' || !request.position.offsets.has(partition)) {
        return resumer.resume(request, scope);
      }
      const offsets = new Map(request.position.offsets);
      offsets.delete(partition);
      return resumer.resume({ ...request, position: { ...request.position, offsets } }, scope);
    },
  };
}

/** Pill n of the symbol: the same for every client, and `late` only where the schedule says so. */
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
    partition,
    offset: step,
    order: timestamp,
    late,
    backfill: false,
    prev: step - 1,
    last: step,
  };
}

/** The last step that was sent before the withheld steps. */
function lastSentBefore(step: number): number {
  let last = step - 1;
  while (chaosStepAt(last) === 'withhold') last -= 1;
  return last;
}
