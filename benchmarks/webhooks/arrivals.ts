import { addArrival, createArrivals } from '../load/deliveries.ts';
import type { PillRun } from '../load/pill-load.ts';

/** Messages and pills that arrive at one endpoint; times are monotonic µs. */
export type EndpointArrivals = ReturnType<typeof countArrivals>['arrivals'];

export function countArrivals({ run, pills }: Pick<PillRun, 'run' | 'pills'>) {
  const arrivals = {
    ...createArrivals(pills),
    /** Messages that were accepted: when they had arrived completely, and their pills. */
    accepted: [] as { readonly atMicros: number; readonly pills: number }[],
    /** Messages, whatever the response was. */
    attempts: 0,
    /** Messages that were accepted more than once under one id. */
    doubledIds: 0,
    /** Pills that arrived under a second id. */
    renamed: 0,
  };
  const idOf = new Array<string | undefined>(pills);
  const timesOf = new Map<string, number>();
  return {
    arrivals,
    /** @returns the number of pills of this run in the body, 0 for a message of another run */
    take(messageId: string, body: string, atMicros: number, isAccepted: boolean): number {
      const numbers = pillNumbersIn(body, run).filter((pill) => pill < pills);
      if (numbers.length === 0) return 0;
      arrivals.attempts += 1;
      for (const pill of numbers) {
        addArrival(arrivals, pill, atMicros, isAccepted);
        idOf[pill] ??= messageId;
        if (idOf[pill] !== messageId) arrivals.renamed += 1;
      }
      if (isAccepted) {
        arrivals.accepted.push({ atMicros, pills: numbers.length });
        const times = (timesOf.get(messageId) ?? 0) + 1;
        timesOf.set(messageId, times);
        if (times === 2) arrivals.doubledIds += 1;
      }
      return numbers.length;
    },
  };
}

/** Numbers of a run's pills in a body, in its order. Parsing the JSON would take longer. */
export function pillNumbersIn(body: string, run: string): number[] {
  const begin = `"id":"${run}-`;
  const numbers: number[] = [];
  for (let at = body.indexOf(begin); at >= 0; at = body.indexOf(begin, at)) {
    at += begin.length;
    const number = Number(body.slice(at, body.indexOf('"', at)));
    if (Number.isSafeInteger(number)) numbers.push(number);
  }
  return numbers;
}
