import { type AccessResult, GOALS } from '../access.ts';
import { alignedLines } from '../aligned-lines.ts';
import { failedOf } from '../http-load/plan.ts';
import type { Extras } from '../results.ts';
import type { TargetSummary } from './run.ts';

/** The result as text. */
export function accessTable(result: AccessResult): string {
  const { machine, connections, seconds, rounds, symbols } = result;
  const { cpu, cores, node, loadBefore } = machine;
  return [
    `${cores} × ${cpu}, Node ${node}, load before ${loadBefore.toFixed(1)}`,
    `GET /api/pills/latest?symbol= over ${symbols} symbols; client and servers share the cores`,
    '',
    `Closed loop, ${connections} connections, ${rounds.length} rounds of ${seconds} s; ` +
      `medians; goal ≥ ${GOALS.ratioMin} × bare`,
    ...alignedLines([
      ['what', 'req/s', '× bare', 'min', 'max', '× by CPU', ...CPU_HEAD, 'goal'],
      ...result.summaries.map(rateRow),
    ]),
    '',
    `Open loop at half of that rate, ms from the planned send; goal p99 ≤ ${ms(GOALS.p99MaxMicros)}`,
    ...alignedLines([
      ['what', 'req/s', 'p50', 'p99', 'p99.9', 'max', 'late p99', 'cores busy', 'others', 'goal'],
      ...halfRateRows(result),
    ]),
    '',
    'By keys in the table; look-ups one at a time, ms; requests/s as above, medians',
    ...alignedLines([
      ['keys', 'first p50', 'first p99', 'again p50', 'again p99', ...SIZE_HEAD, 'note'],
      ...sizeRows(result),
    ]),
  ].join('\n');
}

/** Guarded reads against the same route bare. */
export function accessExtras({ summaries }: AccessResult): Extras {
  const failedBare = summaries.find(({ target }) => target === 'bare')?.failed ?? 0;
  const ratios = summaries
    .filter(({ target }) => target !== 'bare')
    .map(({ target, ratio, failed }) => ({
      ...{ name: `${target} ÷ bare`, ratio },
      valid: failed + failedBare === 0,
    }));
  return { ratios };
}

const CPU_HEAD = ['server µs', 'postgres µs', 'client µs', 'cores busy', 'others'];
const SIZE_HEAD = ['pro req/s', '× bare', 'inst. req/s', '× bare'];

function rateRow(summary: TargetSummary): string[] {
  const { target, perS, ratio, ratioMin, ratioMax, cpuRatio, failed } = summary;
  const verdict = ratio >= GOALS.ratioMin ? 'kept' : 'MISSED';
  return [
    target,
    String(Math.round(perS)),
    ...(target === 'bare'
      ? ['', '', '', '']
      : [ratio, ratioMin, ratioMax, cpuRatio].map((one) => one?.toFixed(2) ?? '?')),
    ...[summary.serverMicros, summary.postgresMicros, summary.clientMicros].map(
      (micros) => micros?.toFixed(0) ?? '?',
    ),
    ...[summary.busyCores, summary.otherCores].map((cores) => cores.toFixed(2)),
    ...[failed > 0 ? `INVALID: ${failed} not 200` : target === 'bare' ? '' : verdict],
  ];
}

function halfRateRows({ halfRate }: AccessResult): string[][] {
  return halfRate.map(({ target, perS, valid, load, busyCores, otherCores }) => {
    const { p50, p99, p999, max } = load.answered!;
    const failed = failedOf(load);
    const verdict = p99 <= GOALS.p99MaxMicros ? 'kept' : 'MISSED';
    const fault = failed > 0 ? `INVALID: ${failed} not 200` : valid ? '' : 'INVALID: client late';
    return [
      target,
      String(perS),
      ...[p50, p99, p999, max, load.lateness!.p99].map(ms),
      ...[busyCores, otherCores].map((cores) => cores.toFixed(2)),
      fault || (target === 'bare' ? '' : verdict),
    ];
  });
}

function sizeRows({ sizes }: AccessResult): string[][] {
  return sizes.map(({ keys, first, again, failed, summaries }) => {
    const hot = (['pro', 'institutional'] as const).flatMap((name) => {
      const { perS, ratio } = summaries.find(({ target }) => target === name)!;
      return [String(Math.round(perS)), ratio.toFixed(2)];
    });
    const latencies = [first.p50, first.p99, again.p50, again.p99].map(ms);
    return [String(keys), ...latencies, ...hot, failed > 0 ? `INVALID: ${failed} not 200` : ''];
  });
}

function ms(micros: number): string {
  return (micros / 1_000).toFixed(2);
}
