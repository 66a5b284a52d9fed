import type { Percentiles } from '../histogram.ts';
import type { EndToEndResult, EndToEndRun } from './end-to-end.ts';

const HEAD = ['what', 'rate', 'p50', 'p99', 'p99.9', 'max', 'count', 'lost', 'doubled', 'note'];

const NAMES = { log: 'log alone: produce', http: 'POST', direct: 'produce' } as const;

/** The result as text: milliseconds from the planned send. */
export function endToEndTable(result: EndToEndResult): string {
  const rows = result.runs.flatMap(rowsOfRun);
  const { cpu, cores, node, loadBefore } = result.machine;
  return [
    `${cores} × ${cpu}, Node ${node}, load before ${loadBefore.toFixed(1)}`,
    `${result.clients} sockets on all of ${result.symbols} symbols, ${result.seconds} s a run; ms`,
    '',
    ...alignedLines([HEAD, ...rows]),
  ].join('\n');
}

function rowsOfRun(run: EndToEndRun): string[][] {
  const { load, watch, perS } = run;
  const rate = `${perS}/s`;
  const name = NAMES[run.via];
  const reader = run.via === 'log' ? 'consume' : 'socket';
  const failed = load.failed.length === 0 ? '' : `${load.failed.length} not acknowledged`;
  const remarks = Object.entries(watch.remarks).map(([what, count]) => `${what} × ${count}`);
  const validity = run.valid ? '' : 'INVALID: over 10 ms late';
  return [
    [`${name} → ok`, rate, ...figures(load.acknowledged), '', '', failed],
    [
      `${name} → ${reader}`,
      rate,
      ...figures(watch.delivered),
      String(watch.lost),
      String(watch.doubled),
      remarks.join(', '),
    ],
    ['  generator late', rate, ...figures(load.lateness), '', '', validity],
  ];
}

function figures({ p50, p99, p999, max, count }: Percentiles): string[] {
  return [...[p50, p99, p999, max].map((micros) => (micros / 1000).toFixed(2)), String(count)];
}

/** First column to the left, figures to the right, notes as they are. */
function alignedLines(rows: readonly (readonly string[])[]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const isText = column === 0 || column === row.length - 1;
        return isText ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
      })
      .join('  ')
      .trimEnd(),
  );
}
