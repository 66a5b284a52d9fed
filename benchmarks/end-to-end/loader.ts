import { nowMicros } from '../../lib/clock.ts';
import type { Pill } from '../../schemas/pill.ts';
import { monotonicMicros } from '../clock.ts';
import { createLatencies } from '../histogram.ts';
import {
  dueCount,
  LATE_MICROS,
  type LoadPlan,
  type LoadReport,
  pillId,
  plannedMicros,
} from './plan.ts';
import { openTarget, type Target } from './target.ts';
import { runTicker } from './ticker.ts';

// A process of its own, forked by load.ts: it must share its event loop with nothing it measures.
// Protocol: parent sends { warmUp: plan } and is told 'warm'; sends { run: plan } and is told the
// report; disconnecting ends it.

const WARM_UP_PILLS = 200;
const ANSWERS_MAX_MS = 12_000;

let target: Target | undefined;

process.on('message', (message: { warmUp?: LoadPlan; run?: LoadPlan }) => {
  const work = async () => {
    if (message.warmUp !== undefined) {
      target = await openTarget(message.warmUp);
      await warmUp(message.warmUp, target);
      process.send?.('warm');
    } else if (message.run !== undefined && target !== undefined) {
      process.send?.(await run(message.run, target));
    }
  };
  work().catch((error: Error) => {
    process.send?.({ error: error.message });
  });
});
process.on('disconnect', () => process.exit(0));

/** Opens the connections and warms the code of both sides, by pills with names of their own. */
async function warmUp(plan: LoadPlan, to: Target): Promise<void> {
  for (let pill = 0; pill < WARM_UP_PILLS; ) {
    const burst: Promise<string | undefined>[] = [];
    for (; burst.length < Math.min(20, plan.connections) && pill < WARM_UP_PILLS; pill += 1) {
      burst.push(to.send(makePill(plan, `${plan.run}w`, pill)));
    }
    const [reason] = (await Promise.all(burst)).filter((answer) => answer !== undefined);
    if (reason !== undefined) throw new Error(`The warm-up was not accepted: ${reason}`);
  }
}

async function run(plan: LoadPlan, to: Target): Promise<LoadReport> {
  const acknowledged = createLatencies();
  const lateness = createLatencies();
  const failures: Record<string, number> = {};
  const failed: number[] = [];
  const answers: Promise<void>[] = [];
  const answersMicros = plan.tellsAnswers ? new Array<number>(plan.pills).fill(0) : [];
  /** Sent, and not answered yet. */
  const open = new Set<number>();
  let late = 0;
  let next = 0;

  const fail = (pill: number, reason: string) => {
    failed.push(pill);
    failures[reason] = (failures[reason] ?? 0) + 1;
  };
  const send = async (pill: number) => {
    const planned = plannedMicros(plan, pill);
    const behind = monotonicMicros() - planned;
    lateness.record(behind);
    if (behind > LATE_MICROS) late += 1;
    open.add(pill);
    try {
      const reason = await to.send(makePill(plan, plan.run, pill));
      if (reason === undefined) {
        const answered = monotonicMicros();
        acknowledged.record(answered - planned);
        if (plan.tellsAnswers) answersMicros[pill] = answered;
      } else fail(pill, reason);
    } catch (error) {
      fail(pill, (error as { code?: string }).code ?? (error as Error).message);
    } finally {
      open.delete(pill);
    }
  };
  const sendDue = () => {
    const due = dueCount(plan, monotonicMicros());
    for (; next < due; next += 1) answers.push(send(next));
  };
  await runTicker(
    { startMicros: plan.startMicros, everyMicros: 1e6 / plan.perS, count: plan.pills },
    sendDue,
  );
  sendDue();
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ANSWERS_MAX_MS);
  });
  await Promise.race([Promise.all(answers), patience]);
  clearTimeout(timer);
  // Nobody acknowledged these: what readers did not get of them is not lost.
  for (const pill of open) fail(pill, `no answer within ${ANSWERS_MAX_MS / 1_000} s`);
  return {
    acknowledged: acknowledged.percentiles(),
    acknowledgedEncoded: acknowledged.encoded(),
    lateness: lateness.percentiles(),
    late,
    failed,
    failures,
    answersMicros,
  };
}

function makePill(plan: LoadPlan, run: string, pill: number): Pill {
  return {
    id: pillId(run, pill),
    timestamp: nowMicros(),
    symbol: plan.symbols[pill % plan.symbols.length]!,
    gross_spread_percent: 0.1 + (pill % 100) / 1000,
    market_state: 'open',
    confidence: 0.9,
  };
}
