import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMicros } from '../clock.ts';
import type { AcceptedMessage } from './arrivals.ts';
import { runPills, type WebhookRun } from './run.ts';
import type { Stage } from './stage.ts';

/** Endpoints that fail for a while and come back. */
export interface DrainRun {
  readonly run: WebhookRun;
  readonly outageS: number;
  /** From the recovery, s: to the first accepted message, to 99 % of the pills, until nothing waits. */
  readonly firstS: number | null;
  readonly mostS: number | null;
  readonly emptyS: number | null;
  /** Between the first accepted message and 99 % of the pills. */
  readonly messagesPerS: number;
  readonly pillsPerS: number;
}

export interface DrainOptions {
  readonly perS: number;
  readonly outageS: number;
  readonly endpoints: number;
  /** How long it is waited until nothing waits. */
  readonly maxS: number;
}

const POLL_MS = 100;
/** What rests is kept after a second: until then nothing in PostgreSQL does not mean nothing. */
const EMPTY_FOR_MICROS = 1_500_000;

/** All endpoints answer 500 while pills come, then accept, and nothing more comes. */
export async function measureDrain(stage: Stage, options: DrainOptions): Promise<DrainRun> {
  const { perS, outageS, endpoints, maxS } = options;
  const { receiver, rows } = stage;
  await stage.makeEndpoints(endpoints);
  await receiver.answer(
    'fails',
    Array.from({ length: endpoints }, (_, endpoint) => endpoint),
  );
  let recovered = 0;
  let emptyS: number | null = null;
  const { run, plan, report } = await runPills(stage, {
    ...{ perS, seconds: outageS, endpoints, arrivalsMaxMs: 0 },
    async beside() {
      // The head start of the load is in it: the last pill has been sent.
      await sleep(outageS * 1_000 + 1_000);
      recovered = monotonicMicros();
      await receiver.answer('accepts', []);
      emptyS = await untilEmpty(rows, recovered, maxS);
    },
  });
  const accepted = report.endpoints.flatMap((one) => one.accepted);
  const pace = paceOf(accepted, plan.pills * endpoints);
  const since = (micros: number | null) => (micros === null ? null : (micros - recovered) / 1e6);
  return {
    ...{ run, outageS, emptyS },
    ...{ firstS: since(pace.firstMicros), mostS: since(pace.mostMicros) },
    ...{ messagesPerS: pace.messagesPerS, pillsPerS: pace.pillsPerS },
  };
}

/** @returns s from the recovery until nothing waits in PostgreSQL, and goes on so; null = not in time */
async function untilEmpty(
  rows: Stage['rows'],
  recovered: number,
  maxS: number,
): Promise<number | null> {
  let since: number | undefined;
  for (;;) {
    const { messages } = await rows.waiting();
    const now = monotonicMicros();
    since = messages > 0 ? undefined : (since ?? now);
    if (since !== undefined && now - since >= EMPTY_FOR_MICROS) return (since - recovered) / 1e6;
    if (now - recovered > maxS * 1e6) return null;
    await sleep(POLL_MS);
  }
}

/** Share of the pills until which the pace is told: a few messages may wait for a late retry. */
const MOST = 0.99;

/** How quickly a backlog left, from its first accepted message to most of the pills. */
export function paceOf(accepted: readonly AcceptedMessage[], pills: number) {
  const sorted = [...accepted].sort((one, other) => one.atMicros - other.atMicros);
  const firstMicros = sorted[0]?.atMicros ?? null;
  let arrived = 0;
  for (const [at, message] of sorted.entries()) {
    arrived += message.pills;
    if (arrived < pills * MOST) continue;
    const seconds = Math.max(1e-3, (message.atMicros - firstMicros!) / 1e6);
    return {
      ...{ firstMicros, mostMicros: message.atMicros },
      ...{ messagesPerS: (at + 1) / seconds, pillsPerS: arrived / seconds },
    };
  }
  return { firstMicros, mostMicros: null, messagesPerS: 0, pillsPerS: 0 };
}
