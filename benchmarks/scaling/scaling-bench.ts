import { setTimeout as sleep } from 'node:timers/promises';
import { benchSymbols } from '../harness/bench-pills.ts';
import { subscribeFrame } from '../harness/bench-socket.ts';
import { LATE_NOTE, noteOf } from '../harness/cells.ts';
import { fixed, grouped, table } from '../harness/columns.ts';
import type { CpuByProcess } from '../harness/cpu.ts';
import { inTemporaryFolder } from '../harness/local-stack.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { buildLoadClient } from '../load/load-client.ts';
import { runPills, startLoad } from '../load/pill-load.ts';
import { openWebhookStage } from '../webhooks/webhook-stage.ts';
import { callInTurn } from './account-calls.ts';
import { lineThrough } from './line.ts';

/** What grows. All else stays at `FIXED`. */
const DIMENSIONS = ['pills', 'symbols', 'sockets', 'accounts', 'endpoints'] as const;
type Dimension = (typeof DIMENSIONS)[number];

const SIZES: Readonly<Record<Dimension, readonly number[]>> = {
  pills: [100, 300, 1_000],
  symbols: [50, 500, 5_000],
  sockets: [10, 100, 300],
  accounts: [1, 100, 1_000],
  endpoints: [1, 10, 50],
};
const UNITS: Readonly<Record<Dimension, string>> = {
  pills: 'pill a second',
  symbols: 'symbol',
  sockets: 'socket on all symbols',
  accounts: 'account that calls',
  endpoints: 'endpoint on all pills',
};
/** Sockets on all symbols get each pill, so fewer pills keep their client from being the limit. */
const FIXED = { perS: 200, symbols: 50, sockets: 10, endpointsPerS: 20, callsPerS: 200 } as const;
const ARRIVALS_MAX_MS = 20_000;
const SETTLE_MS = 1_000;

const FLAGS = {
  dimensions: flag.some('what grows', DIMENSIONS),
  seconds: flag.whole('length of each run', 1, 3_600, 20),
  warmUp: flag.whole('seconds of load before, not counted', 0, 600, 60),
};
type Options = OptionsOf<typeof FLAGS>;

interface Cell {
  readonly dimension: Dimension;
  readonly size: number;
  /** By process, ms of CPU a second. */
  readonly msPerS: CpuByProcess;
  readonly whole: number;
  readonly valid: boolean;
  /** Pills or calls that failed, and pills that did not arrive. */
  readonly missing: number;
}

/** The CPU of a whole stack at three sizes of each dimension, and the slope of each. */
export const SCALING: Scenario<Options> = {
  name: 'scaling',
  description: 'How the CPU of the stack grows with pills, symbols, sockets, accounts, endpoints.',
  flags: FLAGS,
  measure: onStage((stage, options) =>
    inTemporaryFolder((folder) => measure(stage, folder, options)),
  ),
};

async function measure(stage: Stage, folder: string, options: Options): Promise<Report> {
  const { say } = stage;
  const { dimensions, seconds, warmUp } = options;
  const platform = await openPlatform(stage, folder);
  const fixed = { perS: FIXED.perS, symbols: FIXED.symbols, sockets: FIXED.sockets };
  if (warmUp > 0) {
    say(`warm-up, not counted: ${FIXED.perS} pills/s for ${warmUp} s`);
    await platform.sendPills({ ...fixed, seconds: warmUp });
  }
  const run = async (dimension: Dimension, size: number) => {
    if (dimension === 'accounts') return platform.call(size, seconds);
    if (dimension === 'pills') return platform.sendPills({ ...fixed, seconds, perS: size });
    if (dimension !== 'endpoints')
      return platform.sendPills({ ...fixed, seconds, [dimension]: size });
    await platform.makeEndpoints(size);
    return platform.sendPills({ ...fixed, seconds, perS: FIXED.endpointsPerS });
  };
  const cells: Cell[] = [];
  // Endpoints come last: they stay.
  for (const dimension of DIMENSIONS.filter((one) => dimensions.includes(one))) {
    for (const size of SIZES[dimension]) {
      say(`${grouped(size)} × ${UNITS[dimension]}, ${seconds} s`);
      const { cpu, valid, missing } = await run(dimension, size);
      const names = Object.entries(cpu.cpu).filter(([name]) => !name.startsWith('load'));
      const msPerS = Object.fromEntries(
        names.map(([name, cpuS]) => [name, (cpuS / cpu.seconds) * 1_000]),
      );
      const whole = Object.values(msPerS).reduce((sum, one) => sum + one, 0);
      cells.push({ dimension, size, msPerS, whole, valid, missing });
    }
  }
  return reportOf(cells);
}

/** Starts all processes of the platform, and what sends to them. */
async function openPlatform(stage: Stage, folder: string) {
  const openClient = buildLoadClient(folder);
  const { log, key, db, ingest, dispatcher, makeEndpoints } = await openWebhookStage(stage);
  const { namespace } = log;
  const pids: Record<string, number | undefined> = {
    ...stage.engines.pids(),
    ingest: ingest.pid,
    webhooks: dispatcher.pid,
  };
  const ports: Record<string, number> = {};
  for (const name of ['latest', 'analytics', 'api', 'stream']) {
    const { pid, port } = await stage.start(name, namespace);
    pids[name] = pid;
    ports[name] = port;
  }
  const target = { url: `ws://127.0.0.1:${ports.stream}/api/stream`, key, saysLive: true };

  return {
    makeEndpoints,
    call: (accounts: number, seconds: number) =>
      callInTurn({ db, pepper: stage.pepper, port: ports.api!, accounts, seconds, pids, ...CALLS }),
    async sendPills(of: { perS: number; symbols: number; sockets: number; seconds: number }) {
      const { perS, symbols, sockets, seconds } = of;
      const client = await openClient(target, sockets, [subscribeFrame(['*'])]);
      const load = await startLoad({
        ...{ via: 'http', log, symbols: benchSymbols(symbols) },
        ingest: `http://127.0.0.1:${ingest.port}`,
      });
      try {
        await sleep(SETTLE_MS);
        const { sent, cpu, valid } = await runPills(load, client, {
          ...{ perS, pills: perS * seconds, perPill: sockets, maxMs: ARRIVALS_MAX_MS },
          pids: { ...pids, 'load client': client.pid },
        });
        const lost = (perS * seconds - sent.failed.length) * sockets - (await client.arrived());
        return { cpu, valid, missing: sent.failed.length + Math.max(0, lost) };
      } finally {
        load.stop();
        await client.stop();
      }
    },
  };
}

const CALLS = { perS: FIXED.callsPerS };

function reportOf(cells: readonly Cell[]): Report {
  const dimensions = DIMENSIONS.filter((one) => cells.some(({ dimension }) => dimension === one));
  const lines = dimensions.flatMap((dimension) => {
    const own = cells.filter((cell) => cell.dimension === dimension);
    const names = Object.keys(own[0]!.msPerS).sort((a, b) => growth(own, b) - growth(own, a));
    const line = lineThrough(own.map(({ size, whole: cost }) => ({ size, cost })));
    const sizeColumns = own.map((cell): [string, (name: string) => string] => [
      grouped(cell.size),
      (name) => fixed(0, name === 'all' ? cell.whole : cell.msPerS[name]!),
    ]);
    const notes = own.map(({ valid, missing }) =>
      noteOf(valid ? '' : LATE_NOTE, missing === 0 ? '' : `${missing} missing`),
    );
    const notable = notes.filter((note) => note !== '').join('; ');
    return [
      `${dimension}: ${fixed(1, line.slope * 1_000)} µs/s for each ${UNITS[dimension]}, ` +
        `${fixed(0, line.base)} ms/s besides${notable === '' ? '' : ` (${notable})`}`,
      ...table(['all', ...names], [['ms/s', (name) => name], ...sizeColumns, ['', () => '']]),
      '',
    ];
  });
  return {
    figures: { fixed: FIXED, cells },
    lines: [
      `${FIXED.perS} pills/s, ${FIXED.symbols} symbols, ${FIXED.sockets} sockets where nothing else ` +
        `is said; endpoints: ${FIXED.endpointsPerS} pills/s; accounts: ${FIXED.callsPerS} calls/s`,
      '',
      ...lines,
    ],
    ratios: dimensions.map((dimension) => {
      const own = cells.filter((cell) => cell.dimension === dimension);
      const [least, greatest] = [own[0]!, own.at(-1)!];
      const sizes = `${grouped(least.size)} ÷ ${grouped(greatest.size)}`;
      const name = `CPU at ${sizes} ${dimension}`;
      return { name, ratio: least.whole / greatest.whole, valid: own.every(isClean) };
    }),
    isProof: cells.every(isClean),
  };
}

function isClean({ valid, missing }: Cell): boolean {
  return valid && missing === 0;
}

function growth(cells: readonly Cell[], name: string): number {
  return cells.at(-1)!.msPerS[name]! - cells[0]!.msPerS[name]!;
}
