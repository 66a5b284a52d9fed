import { randomUUID } from 'node:crypto';
import { type Api, runQuestions, verify } from '../analytics/questions.ts';
import { makePill, openPillSender, type PillsLog } from '../harness/bench-pills.ts';
import { openSocket } from '../harness/bench-socket.ts';
import { waitForArrivals } from '../harness/cells.ts';
import { createLatencies } from '../harness/histogram.ts';
import { monotonicMicros, plannedMicros, runOpenLoop } from '../harness/open-loop.ts';

/** What an account that exports nothing does in a phase. */
export interface Others {
  readonly log: PillsLog;
  readonly api: Api;
  /** Address of the stream, and a key for its socket. */
  readonly stream: string;
  readonly streamKey: string;
  /** Pills that the log has, which are verified by symbol. */
  readonly live: readonly { readonly symbol: string }[];
  readonly verifyPerS: number;
  readonly pillsPerS: number;
  readonly seconds: number;
}

export type PhaseRun = Awaited<ReturnType<typeof runOthers>>;

const HEAD_START_MICROS = 20_000;
const ARRIVALS_MAX_MS = 10_000;

/** Verifies and streams for one phase, both in an open loop; latencies in µs from the planned time. */
export async function runOthers(others: Others) {
  const { api, live, verifyPerS, seconds } = others;
  const [verified, streamed] = await Promise.all([
    runQuestions(verifyPerS, seconds, (n) =>
      verify(api, { symbol: live[n % live.length]!.symbol }),
    ),
    runStream(others),
  ]);
  return { verified, streamed };
}

/** Writes pills to the log and times their arrival in a socket that is subscribed to all symbols. */
async function runStream({ log, stream, streamKey, live, pillsPerS, seconds }: Others) {
  const latencies = createLatencies();
  const arrived = new Set<number>();
  const sender = await openPillSender(log, 5);
  // A second pill of one id would be a repeat, which no socket gets.
  const phase = randomUUID();
  const ids = new RegExp(`"id":"${phase}-(\\d+)"`, 'g');
  const schedule = { startMicros: 0, perS: pillsPerS, pills: pillsPerS * seconds };
  const socket = await openSocket(stream, streamKey, (text) => {
    const now = monotonicMicros();
    for (const [, id] of text.matchAll(ids)) {
      const micros = now - plannedMicros(schedule, Number(id));
      if (!arrived.has(Number(id))) latencies.record(micros);
      arrived.add(Number(id));
    }
  });
  try {
    schedule.startMicros = monotonicMicros() + HEAD_START_MICROS;
    const sends: Promise<unknown>[] = [];
    const lateness = await runOpenLoop(schedule, (n) => {
      const { symbol } = live[n % live.length]!;
      sends.push(sender.send([makePill(`${phase}-${n}`, symbol, n)]));
    });
    await Promise.all(sends);
    await waitForArrivals(() => arrived.size, schedule.pills, { maxMs: ARRIVALS_MAX_MS });
    const lost = schedule.pills - arrived.size;
    return { latency: latencies.percentiles(), lateness, lost };
  } finally {
    socket.terminate();
    await sender.close();
  }
}
