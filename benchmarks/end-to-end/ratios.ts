import type { Ratio } from '../compare/ratio.ts';
import type { Extras } from '../results.ts';
import { type EndToEndResult, type EndToEndRun, isClean } from './end-to-end.ts';

/** With 10 sockets at 1,000 pills/s, from the planned send (DESIGN section 13). */
export const GOAL = {
  perS: 1_000,
  clients: 10,
  p50MaxMicros: 3_000,
  p99MaxMicros: 12_000,
} as const;

/** Whether the goal is kept; undefined where it is about another run, or this one is invalid. */
export function isGoalKept({ via, perS, valid, watch }: EndToEndRun, clients: number) {
  if (!valid || via !== 'http' || perS !== GOAL.perS || clients !== GOAL.clients) return undefined;
  const { p50, p99 } = watch.delivered;
  return p50 <= GOAL.p50MaxMicros && p99 <= GOAL.p99MaxMicros;
}

/**
 * The log alone against our way, at the median. The p99 is judged by its goal instead: on few
 * cores it differs by factors between two runs of the same code.
 */
export function endToEndExtras({ runs, clients }: EndToEndResult): Extras {
  const alone = (perS: number) => runs.find((run) => run.via === 'log' && run.perS === perS);
  const ratios = runs.flatMap((run): Ratio[] => {
    const log = alone(run.perS);
    if (run.via === 'log' || log === undefined) return [];
    const rate = `${run.perS.toLocaleString('en')}/s`;
    return [
      {
        name: `log alone ÷ ${NAMES[run.via]}, p50 at ${rate}`,
        ratio: log.watch.delivered.p50 / run.watch.delivered.p50,
        valid: isClean(run) && isClean(log),
      },
    ];
  });
  const named = runs
    .filter(({ watch }) => watch.delivered.count > 0)
    .map((run) => {
      const name = `${NAMES[run.via]}, ${run.perS}/s`;
      return { run, name: run.valid ? name : `${name} (INVALID)` };
    });
  return {
    ratios,
    title: `To ${clients} sockets, from the planned send`,
    latencies: named.map(({ run, name }) => ({ name, encoded: run.watch.deliveredEncoded })),
    timelines: named.map(({ run, name }) => ({ name, seconds: run.watch.timeline })),
  };
}

const NAMES = {
  log: 'log alone',
  http: 'POST → socket',
  direct: 'produce → socket',
} as const;
