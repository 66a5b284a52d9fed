import { median } from '../fanout/percentiles.ts';
import type { Extras } from '../results.ts';
import { type Cell, type DedicatedResult, TROUBLES, type Trouble } from './dedicated.ts';

/** Of the idle p99: within a tenth. */
const RATIO_MAX = 1.1;

export interface Summary {
  readonly trouble: Trouble;
  /** Medians of the rounds, in ms. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly ackP99: number;
  /** Each round's p99 ÷ that round's idle p99: median, least and greatest. */
  readonly ratio: number;
  readonly ratioMin: number;
  readonly ratioMax: number;
  readonly verdict: 'kept' | 'MISSED' | 'INVALID';
}

export function summarise(cells: readonly Cell[]): Summary[] {
  const idle = new Map(
    cells.filter(({ trouble }) => trouble === 'idle').map((cell) => [cell.round, cell]),
  );
  return TROUBLES.map((trouble) => {
    const own = cells.filter((cell) => cell.trouble === trouble);
    const of = (value: (cell: Cell) => number) => median(own.map(value)) / 1_000;
    const ratios = own.map(({ round, delivered }) => {
      return delivered.p99 / (idle.get(round)?.delivered.p99 ?? Number.NaN);
    });
    const ratio = median(ratios);
    return {
      trouble,
      p50: of((cell) => cell.delivered.p50),
      p99: of((cell) => cell.delivered.p99),
      p999: of((cell) => cell.delivered.p999),
      ackP99: of((cell) => cell.acknowledged.p99),
      ...{ ratio, ratioMin: Math.min(...ratios), ratioMax: Math.max(...ratios) },
      verdict: !own.every(({ valid }) => valid)
        ? 'INVALID'
        : ratio <= RATIO_MAX
          ? 'kept'
          : 'MISSED',
    };
  });
}

/** Whether a result proves anything: nothing lost or doubled, no pill sent too late. */
export function isProof({ cells }: DedicatedResult): boolean {
  return cells.every(({ lost, doubled, valid }) => lost === 0 && doubled === 0 && valid);
}

/** The idle p99 against that beside each trouble. */
export function dedicatedExtras({ cells }: DedicatedResult): Extras {
  const ratios = summarise(cells)
    .filter(({ trouble }) => trouble !== 'idle')
    .map(({ trouble, ratio, verdict }) => ({
      name: `idle ÷ ${trouble}, p99`,
      ratio: 1 / ratio,
      valid: verdict !== 'INVALID',
    }));
  return { ratios };
}

/** The result as text. */
export function dedicatedTable(result: DedicatedResult): string {
  const { machine, loadAfter, options, cells } = result;
  const { cpu, cores, node, loadBefore } = machine;
  const row = (fields: readonly string[]) => fields.map((field) => field.padStart(10)).join('');
  const ms = (value: number) => value.toFixed(2);
  const lines = summarise(cells).map((one) =>
    row([
      ...[one.trouble, ms(one.p50), ms(one.p99), ms(one.p999), ms(one.ackP99)],
      ...[one.ratio, one.ratioMin, one.ratioMax].map((ratio) => ratio.toFixed(2)),
      one.verdict,
    ]),
  );
  const invalid = cells.filter(({ valid }) => !valid).length;
  const lost = cells.reduce((sum, cell) => sum + cell.lost, 0);
  const doubled = cells.reduce((sum, cell) => sum + cell.doubled, 0);
  return [
    `${cores} × ${cpu}, Node ${node}, load ${loadBefore.toFixed(1)} before, ${loadAfter.toFixed(1)} after`,
    `${options.perS} pills/s, ${options.seconds} s a cell, ${options.rounds} rounds; Pro process nice ${options.proNice}`,
    'One dedicated client; planned send → arrival, ms, medians of rounds; ratio: p99 ÷ the idle p99',
    row(['Pro is', 'p50', 'p99', 'p99.9', 'ack p99', 'ratio', 'min', 'max', '≤ 1.1']),
    ...lines,
    `lost ${lost}, doubled ${doubled}`,
    ...(invalid === 0 ? [] : [`${invalid} cells are INVALID: pills were sent over 10 ms late`]),
  ].join('\n');
}
