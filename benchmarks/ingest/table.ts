import { alignedLines } from '../aligned-lines.ts';
import type { Ratio } from '../compare/ratio.ts';
import { failedOf } from '../http-load/plan.ts';
import { functionLines, profileLines } from '../profile/table.ts';
import type { Extras } from '../results.ts';
import { coresLine, type HalfRateRun, type IngestResult } from './ingest.ts';
import { type TargetSummary, verdictOf } from './summary.ts';
import { GOALS } from './targets.ts';

const FUNCTIONS_TOLD = 8;

/** The result as text. */
export function ingestTable(result: IngestResult): string {
  const { machine, connections, seconds, rounds, profiles } = result;
  const { cpu, cores, node, loadBefore } = machine;
  return [
    `${cores} × ${cpu}, Node ${node}, load before ${loadBefore.toFixed(1)}`,
    coresLine(result.cores),
    '',
    `Closed loop, ${connections} connections, ${rounds.length} rounds of ${seconds} s; medians`,
    ...alignedLines([
      ['what', 'pills/s', '× echo', 'min', 'max', ...CPU_HEAD, 'goal'],
      ...result.summaries.map(rateRow),
    ]),
    '',
    `Open loop at half of what ours reached, ms from the planned send`,
    ...alignedLines([
      ['what', 'pills/s', 'p50', 'p99', 'p99.9', 'max', 'late p99', 'late max', 'goal'],
      ...result.halfRate.map(halfRateRow),
    ]),
    ...(profiles.length === 0 ? [] : ['', 'Where the time goes, closed loop, sampled by V8']),
    ...(profiles.length === 0 ? [] : profileLines(profiles)),
    ...profiles
      .filter(({ name }) => name === 'ours' || name === 'batch')
      .flatMap((profile) => [
        ...['', `${profile.name}: functions with the most time of their own, µs a pill`],
        ...functionLines(profile, FUNCTIONS_TOLD),
      ]),
  ].join('\n');
}

/** The ratios that `compare` judges, and what the plots draw. */
export function ingestExtras({ summaries, halfRate }: IngestResult): Extras {
  const of = (name: string) => summaries.find(({ target }) => target === name)!;
  const [echo, naive, ours, batch] = ['echo', 'naive', 'ours', 'batch'].map(of) as [
    TargetSummary,
    TargetSummary,
    TargetSummary,
    TargetSummary,
  ];
  // A client that was starved in the open loop was so in the closed one, which cannot tell.
  const isOnTime = halfRate.every(({ valid }) => valid);
  const ratioOf = (name: string, ratio: number, of: readonly TargetSummary[]): Ratio => ({
    ...{ name, ratio },
    valid: isOnTime && of.every(({ failed }) => failed === 0),
  });
  const perS = halfRate[0]?.perS.toLocaleString('en');
  return {
    ratios: [
      ratioOf('ours ÷ echo', ours.ratio, [ours, echo]),
      ratioOf('ours ÷ naive', ours.pillsPerS / naive.pillsPerS, [ours, naive]),
      ratioOf('batch ÷ echo', batch.ratio, [batch, echo]),
    ],
    title: `POST → ok at ${perS} pills/s, from the planned send`,
    latencies: halfRate.flatMap(({ target, valid, load }) =>
      load.answeredEncoded === null
        ? []
        : [{ name: valid ? target : `${target} (INVALID)`, encoded: load.answeredEncoded }],
    ),
    timelines: halfRate.map(({ target, valid, load }) => ({
      name: valid ? target : `${target} (INVALID)`,
      seconds: load.timeline,
    })),
  };
}

const CPU_HEAD = ['server µs', 'broker µs', 'client µs', 'server cores', 'strangers'];

function rateRow(summary: TargetSummary): string[] {
  const { target, pillsPerS, ratio, ratioMin, ratioMax, failed } = summary;
  return [
    target,
    String(Math.round(pillsPerS)),
    ...(target === 'echo'
      ? ['', '', '']
      : [ratio, ratioMin, ratioMax].map((one) => one.toFixed(2))),
    ...[summary.serverMicros, summary.brokerMicros, summary.clientMicros].map(
      (micros) => micros?.toFixed(1) ?? '?',
    ),
    summary.serverCores?.toFixed(2) ?? '?',
    summary.otherCores.toFixed(2),
    failed > 0 ? `INVALID: ${failed} not ok` : verdictOf(summary),
  ];
}

function halfRateRow({ target, perS, valid, load }: HalfRateRun): string[] {
  const { p50, p99, p999, max } = load.answered!;
  const failed = failedOf(load);
  const fault = failed > 0 ? `INVALID: ${failed} not ok` : valid ? '' : 'INVALID: over 10 ms late';
  const goal = `p99 ≤ ${ms(GOALS.p99MaxMicros)}: ${p99 <= GOALS.p99MaxMicros ? 'kept' : 'MISSED'}`;
  return [
    target,
    String(perS),
    ...[p50, p99, p999, max, load.lateness!.p99, load.lateness!.max].map(ms),
    fault || (target === 'ours' ? goal : ''),
  ];
}

function ms(micros: number): string {
  return (micros / 1_000).toFixed(2);
}
