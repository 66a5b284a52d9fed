import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMicros } from '../harness/open-loop.ts';
import type { EndpointArrivals } from './arrivals.ts';
import { postPills } from './webhook-run.ts';
import type { WebhookStage } from './webhook-stage.ts';

/** Endpoints that fail for a while and recover. */
export type DrainRun = Awaited<ReturnType<typeof measureDrain>>;

const POLL_MS = 100;
/**
 * The dispatcher stores the messages that it holds within a second: until then an empty table
 * proves nothing.
 */
const EMPTY_FOR_MICROS = 1_500_000;
/** The pace is given up to this share of the pills: a few messages may wait for a late retry. */
const MOST = 0.99;

/**
 * All endpoints answer 500 while pills arrive; then they accept, and no more pills are sent.
 * @param options.maxS the longest wait until the backlog is empty
 */
export async function measureDrain(
  stage: WebhookStage,
  options: { perS: number; outageS: number; endpoints: number; maxS: number },
) {
  const { perS, outageS, endpoints, maxS } = options;
  await stage.makeEndpoints(endpoints);
  const all = Array.from({ length: endpoints }, (_, endpoint) => endpoint);
  await stage.receiver({ respond: { how: 'fails', endpoints: all } });
  let recovered = 0;
  let emptyS = Number.NaN;
  const beside = async () => {
    // One more second covers the head start of the load, so the last pill has been sent.
    await sleep(outageS * 1_000 + 1_000);
    recovered = monotonicMicros();
    await stage.receiver({ respond: { how: 'fails', endpoints: [] } });
    emptyS = await untilEmpty(stage, recovered, maxS);
  };
  const load = { perS, seconds: outageS, endpoints, maxMs: 0, beside };
  const { run, accepted } = await postPills(stage, load);
  const { firstMicros, mostMicros, ...pace } = paceOf(accepted, run.pills * endpoints);
  return {
    run,
    outageS,
    /** From the recovery, s: to the first accepted message, to 99 % of the pills, to no backlog. */
    firstS: (firstMicros - recovered) / 1e6,
    mostS: (mostMicros - recovered) / 1e6,
    emptyS,
    /** Messages and pills a second, between the first accepted message and 99 % of the pills. */
    ...pace,
  };
}

/** @returns s from the recovery until the backlog is, and stays, empty; NaN = not in time */
async function untilEmpty({ waiting }: WebhookStage, recovered: number, maxS: number) {
  let since: number | undefined;
  for (;;) {
    const { messages } = await waiting();
    const now = monotonicMicros();
    since = messages > 0 ? undefined : (since ?? now);
    if (since !== undefined && now - since >= EMPTY_FOR_MICROS) return (since - recovered) / 1e6;
    if (now - recovered > maxS * 1e6) return Number.NaN;
    await sleep(POLL_MS);
  }
}

/** How quickly a backlog was delivered, from its first accepted message to most of the pills. */
export function paceOf(accepted: EndpointArrivals['accepted'], pills: number) {
  const sorted = [...accepted].sort((one, other) => one.atMicros - other.atMicros);
  const firstMicros = sorted[0]?.atMicros ?? Number.NaN;
  let arrived = 0;
  for (const [at, message] of sorted.entries()) {
    arrived += message.pills;
    if (arrived < pills * MOST) continue;
    const mostMicros = message.atMicros;
    const seconds = Math.max(1e-3, (mostMicros - firstMicros) / 1e6);
    return {
      firstMicros,
      mostMicros,
      messagesPerS: (at + 1) / seconds,
      pillsPerS: arrived / seconds,
    };
  }
  return { firstMicros, mostMicros: Number.NaN, messagesPerS: 0, pillsPerS: 0 };
}
