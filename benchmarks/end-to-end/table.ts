import { alignedLines } from '../aligned-lines.ts';
import type { Percentiles } from '../histogram.ts';
import type { EndToEndResult, EndToEndRun } from './end-to-end.ts';
import { GOAL, isGoalKept } from './ratios.ts';

const HEAD = ['what', 'rate', 'p50', 'p99', 'p99.9', 'max', 'count', 'lost', 'doubled', 'note'];

const NAMES = { log: 'log alone: produce', http: 'POST', direct: 'produce' } as const;

/** The result as text: milliseconds from the planned send. */
export function endToEndTable(result: EndToEndResult): string {
  const rows = result.runs.flatMap((run) => rowsOfRun(run, result.clients));
  const { cpu, cores, node, loadBefore } = result.machine;
  return [
    `${cores} × ${cpu}, Node ${node}, load before ${loadBefore.toFixed(1)}`,
    `${result.clients} sockets on all of ${result.symbols} symbols, ${result.seconds} s a run; ms`,
    '',
    ...alignedLines([HEAD, ...rows]),
    '',
    'CPU a pill by process, µs, all its threads; what it takes idle is in it',
    ...alignedLines(cpuRows(result)),
  ].join('\n');
}

/** A row for each process, the one that takes most first; a column for each run. */
function cpuRows({ runs, idleCores }: EndToEndResult): string[][] {
  const perPill = ({ cpu, pills }: EndToEndRun, name: string) => ((cpu[name] ?? 0) * 1e6) / pills;
  const names = [...new Set(runs.flatMap(({ cpu }) => Object.keys(cpu)))];
  const last = runs.at(-1)!;
  const sorted = names.sort((one, other) => perPill(last, other) - perPill(last, one));
  const sum = (run: EndToEndRun) => names.reduce((all, name) => all + perPill(run, name), 0);
  const figure = (micros: number) => micros.toFixed(0);
  return [
    ['process', ...runs.map(({ via, perS }) => `${via} ${perS}/s`), 'idle, cores', ''],
    ...sorted.map((name) => [
      ...[name, ...runs.map((run) => figure(perPill(run, name)))],
      ...[idleCores[name]?.toFixed(3) ?? '', ''],
    ]),
    ['all', ...runs.map((run) => figure(sum(run))), '', ''],
  ];
}

function rowsOfRun(run: EndToEndRun, clients: number): string[][] {
  const { load, watch, perS } = run;
  const rate = `${perS}/s`;
  const name = NAMES[run.via];
  const reader = run.via === 'log' ? 'consume' : 'socket';
  const failed = load.failed.length === 0 ? '' : `${load.failed.length} not acknowledged`;
  const remarks = Object.entries(watch.remarks).map(([what, count]) => `${what} × ${count}`);
  const kept = isGoalKept(run, clients);
  const goal =
    kept === undefined
      ? []
      : [
          `p50 ≤ ${ms(GOAL.p50MaxMicros)}, p99 ≤ ${ms(GOAL.p99MaxMicros)}: ${kept ? 'kept' : 'MISSED'}`,
        ];
  const validity = run.valid ? '' : 'INVALID: over 10 ms late';
  return [
    [`${name} → ok`, rate, ...figures(load.acknowledged), '', '', failed],
    [
      `${name} → ${reader}`,
      rate,
      ...figures(watch.delivered),
      String(watch.lost),
      String(watch.doubled),
      [...remarks, ...goal].join(', '),
    ],
    ['  generator late', rate, ...figures(load.lateness), '', '', validity],
  ];
}

function figures({ p50, p99, p999, max, count }: Percentiles): string[] {
  return [...[p50, p99, p999, max].map(ms), String(count)];
}

function ms(micros: number): string {
  return (micros / 1_000).toFixed(2);
}
