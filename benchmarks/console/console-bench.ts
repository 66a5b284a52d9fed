import path from 'node:path';
import type { Browser, CDPSession } from 'playwright-core';
import { readStackFile } from '../../lib/config/stack-file.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { launchChromium } from '../../testing/launch-chromium.ts';
import { benchSymbols } from '../harness/bench-pills.ts';
import { isOnTime, LATE_NOTE } from '../harness/cells.ts';
import { fixed, ms, table, verdict } from '../harness/columns.ts';
import { inTemporaryFolder, launchStack } from '../harness/local-stack.ts';
import { monotonicMicros } from '../harness/open-loop.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, type Say, type Scenario } from '../harness/scenario.ts';
import { startLoad } from '../load/pill-load.ts';
import { type BarePage, openBarePage } from './bare-page.ts';
import { mainThreadOf } from './trace.ts';

/** At 1,000 pills/s: cores of all processes of the browser, and no task that takes 50 ms of CPU. */
const GOAL = { perS: 1_000, coresMax: 0.3 } as const;
const STACK_START_MAX_MS = 10 * 60_000;
const SETTLE_MS = 3_000;
const HEAD_START_MS = 500;
const CATEGORIES = ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'toplevel'];

const FLAGS = {
  rate: flag.whole('pills a second', 1, 100_000, 1_000),
  seconds: flag.whole('traced seconds of each page', 1, 600, 20),
  memoryMinutes: flag.whole('minutes for which the memory is watched', 0, 600, 2),
  symbols: flag.whole('symbols BENCH.0, BENCH.1, …', 1, 10_000, 50),
};
type Options = OptionsOf<typeof FLAGS>;

/** The market page, and one symbol with its chart. */
const PAGES = [
  ['Live', '/'],
  ['Symbol', '/#BENCH.0'],
] as const;

/** What Chromium does for a page while pills arrive, and how its memory grows. */
export const CONSOLE: Scenario<Options> = {
  name: 'console',
  description: 'CPU, long tasks and memory of the pages in Chromium while pills arrive.',
  flags: FLAGS,
  measure: (options, say) =>
    inTemporaryFolder(async (folder) => {
      say(`starting a stack of its own in ${folder}`);
      const launcher = path.join(packageRoot, 'dist/deploy/local/main.js');
      const command = [process.execPath, launcher, '--no-demo'] as const;
      const own = await launchStack(path.join(folder, 'data'), [...command], STACK_START_MAX_MS);
      try {
        return await measure(own.stackFile, options, say);
      } finally {
        await own.stop();
      }
    }),
};

async function measure(stackFile: string, options: Options, say: Say): Promise<Report> {
  const { rate, seconds, memoryMinutes, symbols } = options;
  const { api, ingest, kafka, registry } = readStackFile(stackFile);
  const log = { kafkaBrokers: kafka, registryUrl: registry, namespace: '' };
  const load = await startLoad({
    ...{ via: 'http', log, symbols: benchSymbols(symbols), ingest, connections: 64 },
    credential: process.env.INGEST_CREDENTIAL,
  });
  // Every process of the browser counts; no GPU is there to help on a server.
  const browser = await launchChromium(['--enable-precise-memory-info']);
  const send = (forS: number) =>
    load.run({
      ...{ run: `c${Date.now().toString(36)}`, perS: rate, pills: rate * forS },
      startMicros: monotonicMicros() + HEAD_START_MS * 1_000,
    });
  const cdp = await browser.newBrowserCDPSession();
  try {
    await send(1);
    const cells = [];
    for (const [name, address] of PAGES) {
      say(`${name}: ${rate} pills/s for ${seconds} s`);
      cells.push({
        name,
        ...(await measurePage({ browser, cdp }, `${api}${address}`, send, seconds)),
      });
    }
    say(`memory of Live: ${memoryMinutes} min`);
    const memory = await watchMemory(cdp, `${api}/`, send, memoryMinutes);
    return reportOf(options, cells, memory);
  } finally {
    await browser.close();
    load.stop();
  }
}

type Send = (seconds: number) => ReturnType<Awaited<ReturnType<typeof startLoad>>['run']>;

/** Opens a page, and traces it while pills arrive. */
async function measurePage(
  { browser, cdp }: { readonly browser: Browser; readonly cdp: CDPSession },
  url: string,
  send: Send,
  seconds: number,
) {
  const page = await openMarket(cdp, url);
  try {
    await send(SETTLE_MS / 1_000);
    await browser.startTracing(undefined, { categories: [...CATEGORIES] });
    const before = await cpuByType(cdp);
    const startMs = performance.now();
    const { lateness } = await send(seconds);
    const elapsedS = (performance.now() - startMs) / 1_000;
    const after = await cpuByType(cdp);
    const main = mainThreadOf((await browser.stopTracing()).toString());
    const cores = Object.fromEntries(
      Object.keys(after).map((type) => [
        type,
        ((after[type] ?? 0) - (before[type] ?? 0)) / elapsedS,
      ]),
    );
    return { ...main, cores, lateness, valid: isOnTime(lateness) };
  } finally {
    await page.close();
  }
}

async function openMarket(cdp: CDPSession, url: string): Promise<BarePage> {
  const page = await openBarePage(cdp, url);
  await page.shows('BENCH.0');
  return page;
}

/** CPU seconds so far of the browser's processes, by type: browser, renderer, GPU. */
async function cpuByType(cdp: CDPSession): Promise<Record<string, number>> {
  const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
  const sums: Record<string, number> = {};
  for (const { type, cpuTime } of processInfo) sums[type] = (sums[type] ?? 0) + cpuTime;
  return sums;
}

/** Bytes of the script heap after a collection, at the start and after each minute. */
async function watchMemory(cdp: CDPSession, url: string, send: Send, minutes: number) {
  const page = await openMarket(cdp, url);
  await page.send('HeapProfiler.enable');
  const heap = async () => {
    await page.send('HeapProfiler.collectGarbage');
    const { usedSize } = (await page.send('Runtime.getHeapUsage')) as { readonly usedSize: number };
    return usedSize;
  };
  try {
    await send(SETTLE_MS / 1_000);
    const bytes = [await heap()];
    for (let minute = 0; minute < minutes; minute += 1) {
      await send(60);
      bytes.push(await heap());
    }
    return bytes;
  } finally {
    await page.close();
  }
}

type Cell = Awaited<ReturnType<typeof measurePage>> & { readonly name: string };

const coresOf = ({ cores }: Cell) => Object.values(cores).reduce((sum, one) => sum + one, 0);

function reportOf(
  { rate, seconds, symbols }: Options,
  cells: readonly Cell[],
  memory: readonly number[],
): Report {
  const isKept = (cell: Cell) => coresOf(cell) <= GOAL.coresMax && cell.longCpuTasks === 0;
  const noteOf = (cell: Cell) => {
    if (!cell.valid) return LATE_NOTE;
    return rate === GOAL.perS
      ? `≤ ${GOAL.coresMax} core, no long task: ${verdict(isKept(cell))}`
      : '';
  };
  const mib = (bytes: number) => fixed(1, bytes / 2 ** 20);
  return {
    figures: { rate, seconds, symbols, cells, memory },
    lines: [
      `${rate} pills/s on ${symbols} symbols, ${seconds} s a page; CPU in cores; tasks of the main thread`,
      '',
      ...table(cells, [
        ['page', ({ name }) => name],
        ['all', (cell) => fixed(3, coresOf(cell))],
        ['renderer', ({ cores }) => fixed(3, cores.renderer ?? null)],
        ['GPU', ({ cores }) => fixed(3, cores.GPU ?? null)],
        ['browser', ({ cores }) => fixed(3, cores.browser ?? null)],
        ['main busy', ({ busyShare }) => fixed(3, busyShare)],
        ['long', ({ longTasks }) => longTasks],
        ['longest, ms', ({ longestMicros }) => ms(longestMicros)],
        ['long by CPU', ({ longCpuTasks }) => longCpuTasks],
        ['longest by CPU, ms', ({ longestCpuMicros }) => ms(longestCpuMicros)],
        ['note', noteOf],
      ]),
      '',
      `Script heap of Live after a collection, MiB, by minute: ${memory.map(mib).join(', ')}`,
    ],
    // Shares of a core have no reference on another machine.
    ratios: [],
    isProof: cells.every(({ valid }) => valid),
  };
}
