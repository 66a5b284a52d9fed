import { isOnTime, LATE_NOTE, noteOf } from '../harness/cells.ts';
import { fixed, grouped, percentileColumns, table, verdict } from '../harness/columns.ts';
import type { CpuByProcess } from '../harness/cpu.ts';
import { compareRounds } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import type { PhaseRun } from './isolation.ts';
import type { Fetched, Way } from './ways.ts';

export interface WayCell extends Fetched {
  readonly way: Way;
  readonly round: number;
  readonly seconds: number;
  readonly cpu: CpuByProcess;
}

export interface PhaseCell extends PhaseRun {
  readonly kind: 'quiet' | 'export';
  readonly round: number;
  /** Pills that exports wrote meanwhile. */
  readonly exported: number;
}

/** p99 of others, beside an export against without one. */
const RATIO_MAX = 2;
const serverCpu = ({ cpu }: WayCell) => (cpu.api ?? Number.NaN) + (cpu.clickhouse ?? Number.NaN);

export function reportOf(
  options: {
    readonly rows: number;
    readonly verifyPerS: number;
    readonly pillsPerS: number;
    readonly seconds: number;
  },
  ways: readonly WayCell[],
  phases: readonly PhaseCell[],
): Report {
  const { rows, verifyPerS, pillsPerS, seconds } = options;
  const isWhole = ways.every((cell) => cell.rows === rows);
  const isValid = phases.every(
    ({ kind, verified, streamed, exported }) =>
      isOnTime(streamed.lateness) &&
      verified.failed + streamed.lost === 0 &&
      exported > 0 === (kind === 'export'),
  );
  const of = (kind: PhaseCell['kind']) => phases.filter((one) => one.kind === kind);
  const compare = (p99Of: (cell: PhaseCell) => number) =>
    compareRounds(of('export'), of('quiet'), p99Of);
  const verifying = compare(({ verified }) => verified.latency.p99);
  const streaming = compare(({ streamed }) => streamed.latency.p99);
  const isolation = ([name, one]: readonly [string, typeof verifying]) =>
    `${name}, p99 beside an export ÷ without: ${fixed(2, one.ratio)} (${fixed(2, one.ratioMin)} to ` +
    `${fixed(2, one.ratioMax)}), ≤ ${RATIO_MAX}: ${verdict(one.ratio <= RATIO_MAX)}`;
  const cellsOf = (way: Way) => ways.filter((one) => one.way === way);
  const saved = (way: Way) =>
    1 / compareRounds(cellsOf(way), cellsOf('JSON pages'), serverCpu).ratio;
  return {
    figures: { ...options, ways, phases },
    lines: [
      `A day of ${grouped(rows)} pills; bytes as received, CPU of the API and of ClickHouse`,
      '',
      ...table(ways, wayColumns),
      '',
      `Other accounts for ${seconds} s: ${verifyPerS} market verify/s, ${pillsPerS} pills/s to a socket; ms`,
      '',
      ...table(phases, phaseColumns),
      '',
      isolation(['verify', verifying]),
      isolation(['stream', streaming]),
      ...(isWhole ? [] : ['INVALID: a way did not get all pills']),
    ],
    ratios: [
      { name: 'JSON ÷ Arrow (server CPU)', ratio: saved('Arrow pages'), valid: isWhole },
      { name: 'JSON ÷ export (server CPU)', ratio: saved('export'), valid: isWhole },
      { name: 'quiet ÷ export (verify, p99)', ratio: 1 / verifying.ratio, valid: isValid },
      { name: 'quiet ÷ export (stream, p99)', ratio: 1 / streaming.ratio, valid: isValid },
    ],
    isProof: isWhole && isValid,
  };
}

const wayColumns: Parameters<typeof table<WayCell>>[1] = [
  ['way', ({ way }) => way],
  ['round', ({ round }) => round],
  ['pills', ({ rows }) => grouped(rows)],
  ['seconds', ({ seconds }) => fixed(1, seconds)],
  ['MB', ({ bytes }) => fixed(1, bytes / 1e6)],
  ['requests', ({ requests }) => requests],
  ['API CPU s', ({ cpu }) => fixed(2, cpu.api ?? null)],
  ['ClickHouse CPU s', ({ cpu }) => fixed(2, cpu.clickhouse ?? null)],
];

const phaseColumns: Parameters<typeof table<PhaseCell>>[1] = [
  ['phase', ({ kind }) => kind],
  ['round', ({ round }) => round],
  ...percentileColumns<PhaseCell>(({ verified }) => verified.latency, ['p50', 'p99'], 'verify '),
  ...percentileColumns<PhaseCell>(({ streamed }) => streamed.latency, ['p50', 'p99'], 'stream '),
  ['failed', ({ verified }) => verified.failed],
  ['lost', ({ streamed }) => streamed.lost],
  ['pills exported', ({ exported }) => grouped(exported)],
  ['note', ({ streamed }) => noteOf(isOnTime(streamed.lateness) ? '' : LATE_NOTE)],
];
