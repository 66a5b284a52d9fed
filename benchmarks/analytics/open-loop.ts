import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMicros } from '../clock.ts';
import { createLatencies, type Percentiles } from '../histogram.ts';

/** What became of the questions of an open loop. */
export interface OpenLoop {
  readonly perS: number;
  /** From the planned send, µs. */
  readonly latency: Percentiles;
  /** Without an answer, or with a wrong one. */
  readonly failed: number;
}

/**
 * Asks in an open loop: question i is planned for start + i / rate, whether or not earlier ones were
 * answered. @param ask resolves to whether the answer was right
 */
export async function askOpenLoop(
  { perS, seconds }: { readonly perS: number; readonly seconds: number },
  ask: (at: number) => Promise<boolean>,
): Promise<OpenLoop> {
  const latencies = createLatencies();
  const answers: Promise<void>[] = [];
  let failed = 0;
  const began = monotonicMicros();
  for (let at = 0; at < perS * seconds; at += 1) {
    const planned = began + (at * 1e6) / perS;
    const wait = (planned - monotonicMicros()) / 1_000;
    if (wait > 0) await sleep(wait);
    const answered = ask(at).catch(() => false);
    answers.push(
      answered.then((isRight) => {
        latencies.record(monotonicMicros() - planned);
        if (!isRight) failed += 1;
      }),
    );
  }
  await Promise.all(answers);
  return { perS, latency: latencies.percentiles(), failed };
}
