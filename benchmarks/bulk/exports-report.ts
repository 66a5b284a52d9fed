import { fixed, grouped, table, verdict } from '../harness/columns.ts';
import { median } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import type { MemorySample } from './memory.ts';

type Process = 'api' | 'clickhouse';

export interface FormatCell {
  readonly format: string;
  readonly rows: number;
  readonly seconds: number;
  /** Resident bytes before the export, and over it. */
  readonly before: Readonly<Record<Process, number>>;
  readonly samples: readonly MemorySample[];
  /** Most bytes that ClickHouse counted for a statement. */
  readonly statement: number;
  readonly bytes: number;
  readonly ranges: number;
  readonly downloadS: number;
  readonly verified: { readonly seconds: number; readonly maxRssMib: number };
}

const MIB = 1_048_576;
/** Growth of resident memory from the second tenth of the pills to the last one. */
const GROWTH_MIB_MAX = { api: 64, clickhouse: 256 } as const;
const TENTHS = 10;

export function reportOf(
  { rows, parts }: { readonly rows: number; readonly parts: number },
  cells: readonly FormatCell[],
): Report {
  const figures = cells.map(({ samples, ...cell }) => {
    const tenths = Array.from({ length: TENTHS }, (_, tenth) => medianOf(samples, rows, tenth));
    return { ...cell, tenths, most: mostOf(samples), growth: growthOf(tenths) };
  });
  type Figures = (typeof figures)[number];
  const isKept = ({ growth }: Figures) =>
    growth.api <= GROWTH_MIB_MAX.api && growth.clickhouse <= GROWTH_MIB_MAX.clickhouse;
  const isWhole = cells.every((cell) => cell.rows === rows);
  const mib = (bytes: number) => fixed(0, bytes / MIB);
  const memory = (name: Process, of: Figures) => {
    const [, second] = of.tenths;
    return [of.before[name], second![name], of.tenths.at(-1)![name], of.most[name]]
      .map(mib)
      .join(' / ');
  };
  return {
    figures: { rows, parts, formats: figures },
    lines: [
      `${grouped(rows)} pills in ${parts} parts; resident MiB before / in the second tenth / in the`,
      'last tenth / at most',
      '',
      ...table(figures, [
        ['format', ({ format }) => format],
        ['MB', ({ bytes }) => grouped(bytes / 1e6)],
        ['export s', ({ seconds }) => fixed(0, seconds)],
        ['pills/s', (of) => grouped(of.rows / of.seconds)],
        ['API', (of) => memory('api', of)],
        ['ClickHouse', (of) => memory('clickhouse', of)],
        ['statement MiB', ({ statement }) => mib(statement)],
        ['download s', ({ downloadS, ranges }) => `${fixed(0, downloadS)} (${ranges} ranges)`],
        ['check s', ({ verified }) => fixed(0, verified.seconds)],
        ['check MiB', ({ verified }) => fixed(0, verified.maxRssMib)],
        ['memory', (of) => verdict(isKept(of))],
      ]),
      '',
      `Goal: grows by at most ${GROWTH_MIB_MAX.api} (API) and ${GROWTH_MIB_MAX.clickhouse} MiB ` +
        '(ClickHouse) from the second tenth to the last.',
      ...(isWhole ? [] : ['INVALID: an export has not all pills']),
    ],
    ratios: [],
    isProof: isWhole && figures.every(isKept),
  };
}

/** Median bytes while a tenth of the pills was written; NaN where no sample is in it. */
function medianOf(samples: readonly MemorySample[], rows: number, tenth: number) {
  const own = samples.filter((one) => one.rows > 0 && tenthOf(one.rows, rows) === tenth);
  return {
    api: median(own.map((one) => one.api)),
    clickhouse: median(own.map((one) => one.clickhouse)),
  };
}

function tenthOf(written: number, rows: number): number {
  return Math.min(TENTHS - 1, Math.floor((written / rows) * TENTHS));
}

function mostOf(samples: readonly MemorySample[]) {
  const most = (name: Process) => Math.max(...samples.map((one) => one[name]));
  return { api: most('api'), clickhouse: most('clickhouse') };
}

/** MiB; NaN, which keeps no goal, where the export was too short for a sample in each tenth. */
function growthOf(tenths: readonly Readonly<Record<Process, number>>[]) {
  const growth = (name: Process) => (tenths.at(-1)![name] - tenths[1]![name]) / MIB;
  return { api: growth('api'), clickhouse: growth('clickhouse') };
}
