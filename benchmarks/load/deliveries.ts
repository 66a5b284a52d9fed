import { createLatencies, createTimeline } from '../harness/histogram.ts';
import { plannedMicros, type Schedule } from '../harness/open-loop.ts';
import type { LoadReport } from './pill-load.ts';

export type Arrivals = ReturnType<typeof createArrivals>;

export function createArrivals(pills: number) {
  return {
    /** By pill, the first time it arrived, in µs of the monotonic clock; 0 = never. */
    firstMicros: new Float64Array(pills),
    /** By pill, how often it arrived and was accepted. */
    times: new Uint8Array(pills),
    /** Pills that arrived and were accepted, each once. */
    pills: 0,
  };
}

export function addArrival(arrivals: Arrivals, pill: number, micros: number, isAccepted = true) {
  const { firstMicros, times } = arrivals;
  if (firstMicros[pill] === 0) firstMicros[pill] = micros;
  if (!isAccepted) return;
  if (times[pill] === 0) arrivals.pills += 1;
  times[pill] = Math.min(255, times[pill]! + 1);
}

/** Judges the arrivals at all readers by the schedule and by the answers to the generator. */
export function judgeArrivals(
  schedule: Schedule,
  { answersMicros }: Pick<LoadReport, 'answersMicros'>,
  readers: readonly Pick<Arrivals, 'firstMicros' | 'times'>[],
) {
  const sincePlanned = createLatencies();
  const sinceAnswer = createLatencies();
  const timeline = createTimeline(schedule.startMicros);
  let [lost, doubled] = [0, 0];
  for (const { firstMicros, times } of readers) {
    for (let pill = 0; pill < schedule.pills; pill += 1) {
      const answered = answersMicros[pill]!;
      const first = firstMicros[pill]!;
      if (times[pill]! > 1) doubled += 1;
      if (times[pill] === 0 && answered > 0) lost += 1;
      if (first === 0) continue;
      const planned = plannedMicros(schedule, pill);
      sincePlanned.record(first - planned);
      timeline.record(planned, first - planned);
      if (answered > 0) sinceAnswer.record(first - answered);
    }
  }
  return {
    /** From the planned send, and from its acknowledgement, to the first arrival. */
    sincePlanned: sincePlanned.spread(),
    sinceAnswer: sinceAnswer.spread(),
    timeline: timeline.seconds(),
    /** Acknowledged pills that a reader did not get, and pills that it got again, summed. */
    lost,
    doubled,
  };
}
