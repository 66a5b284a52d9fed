import { nowMicros } from '../../lib/clock.ts';
import type { Pill } from '../../schemas/pill.ts';
import { monotonicMicros } from '../clock.ts';
import { dueCount } from '../end-to-end/plan.ts';
import { runTicker } from '../end-to-end/ticker.ts';
import { createLatencies, type Percentiles } from '../histogram.ts';
import { type LogPlace, openPillSender } from '../pill-sender.ts';
import { type PillPlan, pillId, plannedMicros, SYMBOLS } from './plan.ts';

/** What the feed saw of its run. */
export interface FeedReport {
  /** How late pills were handed to the producer against the plan, in µs. */
  readonly lateness: Percentiles;
  /** Planned send to the log's acknowledgement, in µs. */
  readonly acknowledged: Percentiles;
  readonly failed: number;
}

/** Writes pills to the log of one namespace. */
export interface PillFeed {
  run(plan: PillPlan): Promise<FeedReport>;
  close(): Promise<void>;
}

/** The thread that paces wakes no more often: several pills of one tick go out together. */
const TICK_MICROS_MIN = 1_000;

/** Opens a producer of ours that writes to the pills topic directly, open loop, one try a pill. */
export async function openPillFeed(place: LogPlace): Promise<PillFeed> {
  const sender = await openPillSender(place, 1);
  return {
    async run(plan) {
      const lateness = createLatencies();
      const acknowledged = createLatencies();
      const answers: Promise<void>[] = [];
      let failed = 0;
      let next = 0;
      const sendDue = () => {
        const now = monotonicMicros();
        const from = next;
        const pills: Pill[] = [];
        for (const due = dueCount(plan, now); next < due; next += 1) {
          lateness.record(now - plannedMicros(plan, next));
          pills.push(makePill(plan, next));
        }
        if (pills.length === 0) return;
        const answer = sender.send(pills).then(({ ok }) => {
          failed += pills.length - ok;
          const at = monotonicMicros();
          pills.forEach((_, i) => {
            acknowledged.record(at - plannedMicros(plan, from + i));
          });
        });
        answers.push(answer);
      };
      const everyMicros = Math.max(TICK_MICROS_MIN, 1e6 / plan.perS);
      const count = Math.ceil((plan.pills * 1e6) / plan.perS / everyMicros);
      await runTicker({ startMicros: plan.startMicros, everyMicros, count }, sendDue);
      while (next < plan.pills) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        sendDue();
      }
      await Promise.all(answers);
      return {
        lateness: lateness.percentiles(),
        acknowledged: acknowledged.percentiles(),
        failed,
      };
    },
    close: sender.close,
  };
}

function makePill(plan: PillPlan, pill: number): Pill {
  return {
    id: pillId(plan, pill),
    timestamp: nowMicros(),
    symbol: SYMBOLS[pill % SYMBOLS.length]!,
    gross_spread_percent: 0.1 + (pill % 100) / 1_000,
    market_state: 'open',
    confidence: 87.5,
  };
}
