import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';
import type { PlotSeries } from './plots.ts';
import type { Baseline, ComparedResult, Ratio } from './ratios.ts';

/** Default folder of the results; git ignores all of it but the baseline. */
export const resultsFolder: string = path.join(packageRoot, 'benchmarks', 'results');

export const baselineFile: string = path.join(resultsFolder, 'baseline.json');

export interface Report {
  /** Everything that was measured, for the JSON file. */
  readonly figures: object;
  /** The table, below the description of the machine. */
  readonly lines: readonly string[];
  readonly ratios: readonly Ratio[];
  readonly plot?: Plot;
  /** Whether the result is conclusive; if not, the exit code is 1. */
  readonly isProof: boolean;
}

interface Plot {
  readonly title: string;
  readonly series: readonly PlotSeries[];
}

/** Writes `<benchmark>-<time>.json`, and its plots beside it. @returns the paths of the files */
export async function writeResult(
  folder: string,
  result: { readonly benchmark: string; readonly at: string },
  plot: Plot | undefined,
): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  const time = result.at.replaceAll(/[-:]/g, '').slice(0, 15);
  const files: string[] = [];
  const write = (ending: string, text: string) => {
    const file = path.join(folder, `${result.benchmark}-${time}${ending}`);
    writeFileSync(file, text);
    files.push(file);
  };
  write('.json', `${JSON.stringify(result, null, 2)}\n`);
  if (plot !== undefined) {
    // The plots are loaded late: their memory and start must not disturb a measurement.
    const { percentilePlot, timelinePlot } = await import('./plots.ts');
    write('-percentiles.svg', await percentilePlot(plot.title, plot.series));
    write('-timeline.svg', await timelinePlot(plot.title, plot.series));
  }
  return files;
}

/** Files of the newest result of each benchmark in a folder. */
export function newestResults(folder: string): string[] {
  mkdirSync(folder, { recursive: true });
  const newest = new Map<string, string>();
  for (const file of readdirSync(folder).sort()) {
    const benchmark = /^(.+)-\d{8}T\d{6}\.json$/.exec(file)?.[1];
    if (benchmark !== undefined) newest.set(benchmark, path.join(folder, file));
  }
  return [...newest.values()];
}

/** @throws with one sentence when the file is no result that can be compared */
export function readResult(file: string): ComparedResult {
  const result = readJson(file) as Partial<ComparedResult>;
  if (typeof result.benchmark === 'string' && Array.isArray(result.ratios)) {
    return result as ComparedResult;
  }
  throw new Error(`${file} holds no ratios: run the benchmark again with this version.`);
}

/** Empty where there is no baseline yet. */
export function readBaseline(file: string): Baseline {
  try {
    return readJson(file) as Baseline;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

export function writeBaseline(file: string, baseline: Baseline): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(baseline, null, 2)}\n`);
}

function readJson(file: string): unknown {
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`);
  }
}
