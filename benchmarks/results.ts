import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../lib/root.ts';
import type { Baseline, ComparedResult, Ratio } from './compare/ratio.ts';
import type { LatencySeries } from './plots/percentiles.ts';
import type { TimelineSeries } from './plots/timeline.ts';

/** Where results are kept unless said otherwise; git ignores all but the baseline. */
export const resultsFolder: string = path.join(packageRoot, 'benchmarks', 'results');

export const baselineFile: string = path.join(resultsFolder, 'baseline.json');

/** What goes with a result. */
export interface Extras {
  readonly ratios: readonly Ratio[];
  /** For the plot of percentiles and the timeline; without any there is no picture. */
  readonly title?: string;
  readonly latencies?: readonly LatencySeries[];
  readonly timelines?: readonly TimelineSeries[];
}

/**
 * Writes a result with its ratios as `<benchmark>-<time>.json`, and its plots beside it.
 * @returns the files' paths.
 */
export async function writeResult(
  folder: string,
  result: { readonly benchmark: string; readonly at: string },
  { ratios, title = result.benchmark, latencies = [], timelines = [] }: Extras,
): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  const time = result.at.replaceAll(/[-:]/g, '').slice(0, 15);
  const stem = path.join(folder, `${result.benchmark}-${time}`);
  const files: string[] = [];
  const write = (ending: string, text: string) => {
    writeFileSync(`${stem}${ending}`, text);
    files.push(`${stem}${ending}`);
  };
  write('.json', `${JSON.stringify({ ...result, ratios }, null, 2)}\n`);
  if (latencies.length + timelines.length > 0) {
    // Loaded only now: nothing that is measured shares its memory or start with it.
    const { percentilePlot, timelinePlot } = await import('./plots/svg.ts');
    if (latencies.length > 0) write('-percentiles.svg', await percentilePlot(title, latencies));
    if (timelines.length > 0) write('-timeline.svg', await timelinePlot(title, timelines));
  }
  return files;
}

/** Files of the newest result of each benchmark in a folder. */
export function newestResults(folder: string): string[] {
  const newest = new Map<string, string>();
  for (const file of namesIn(folder).sort()) {
    const benchmark = /^(.+)-\d{8}T\d{6}\.json$/.exec(file)?.[1];
    if (benchmark !== undefined) newest.set(benchmark, path.join(folder, file));
  }
  return [...newest.values()];
}

/** @throws with one sentence when it is not a result that can be compared */
export function readResult(file: string): ComparedResult {
  const result = readJson(file) as Partial<ComparedResult>;
  if (typeof result.benchmark === 'string' && Array.isArray(result.ratios)) {
    return result as ComparedResult;
  }
  throw new Error(`${file} holds no ratios: run the benchmark again with this version.`);
}

/** Empty where there is none yet. */
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

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
