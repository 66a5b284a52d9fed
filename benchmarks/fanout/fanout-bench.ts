import path from 'node:path';
import { inRounds } from '../harness/cells.ts';
import { fixed, ms } from '../harness/columns.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { buildLoadClient } from '../load/load-client.ts';
import { startLoad } from '../load/pill-load.ts';
import { isWhole, measureCell, type Server } from './cell.ts';
import { lines, ratiosOf } from './fanout-report.ts';
import { PATTERNS, type Pattern, SYMBOLS, subscribeFrames } from './plan.ts';
import { isKept, measureSlow } from './slow-consumers.ts';

const FLAGS = {
  sockets: flag.whole('how many', 1, 1_000, 500),
  rate: flag.rising('pills a second, e.g. 100,1000', 1, 100_000, [100, 400, 1_000]),
  symbols: flag.some('symbols of a socket: all, 2of50', PATTERNS),
  seconds: flag.whole('length of each cell', 1, 3_600, 8),
  rounds: flag.whole('number of rounds', 1, 100, 1),
  warmUp: flag.whole('seconds on each server before, not counted', 0, 600, 20),
  slow: flag.whole('sockets that stop reading, in runs of 18 s; 0: none', 0, 500, 20),
  profile: flag.text('<dir>', 'folder for a CPU profile of each server', ''),
};
type Options = OptionsOf<typeof FLAGS>;

const WARM_UP_PER_S = 300;

export const FANOUT: Scenario<Options> = {
  name: 'fanout',
  description: 'Pills to many sockets: CPU a delivery and latency, beside a bare uWS loop.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: Options): Promise<Report> {
  const { say } = stage;
  const { sockets, rounds, rate, seconds, warmUp, symbols, slow, profile } = options;
  const openClient = buildLoadClient(stage.folder);
  const stream = await openServer(stage, 'stream', profile);
  const servers = [stream, await openServer(stage, 'loop', profile)];
  const restPids = [process.pid, ...Object.values(stage.engines.pids())];
  const measureOne = async (
    server: Server,
    cell: { pattern: Pattern; perS: number; seconds: number; sockets: number },
  ) => {
    const frames = subscribeFrames(cell.pattern, cell.sockets);
    const client = await openClient(server, cell.sockets, frames);
    try {
      return await measureCell(server, client, { ...cell, restPids });
    } finally {
      await client.stop();
    }
  };
  for (const server of warmUp > 0 ? servers : []) {
    say(`warm-up, not counted: ${server.name}, ${warmUp} s`);
    const load = { pattern: 'all', perS: WARM_UP_PER_S, seconds: warmUp, sockets } as const;
    await measureOne(server, load);
  }
  const cells = [];
  for (const pattern of symbols) {
    for (const perS of rate) {
      const measured = await inRounds(servers, rounds, async (server) => {
        const cell = await measureOne(server, { pattern, perS, seconds, sockets });
        const cpu = `${fixed(2, cell.serverSecondsPerMillion)} CPU s a million`;
        const p99 = `p99 ${ms(cell.delivered.p99)} ms, lost ${cell.lost}`;
        say(`${pattern} ${perS}/s ${server.name}: ${cpu}, ${p99}`);
        return cell;
      });
      cells.push(...measured);
    }
  }
  // Without a socket, at the highest rate: the cost of reading the log alone.
  const alone = { pattern: 'all', perS: Math.max(...rate), seconds, sockets: 0 } as const;
  const feedAlone = [];
  for (const server of servers) feedAlone.push(await measureOne(server, alone));
  const stalls = slow === 0 ? [] : [false, true];
  const slowCells = await inRounds(stalls, rounds, (stalling, round) => {
    say(`round ${round}, sockets that stop reading: ${stalling ? slow : 'none'} of ${sockets}`);
    return measureSlow(stream, openClient, stalling, { sockets, slow, restPids });
  });
  const figures = { sockets, seconds, cells, feedAlone, slow: slowCells };
  const isProof = cells.every((cell) => cell.valid && isWhole(cell)) && slowCells.every(isKept);
  return { figures, lines: lines(figures), ratios: ratiosOf(cells), isProof };
}

/** Starts a server with a log of its own, so that pills for one cost the other nothing. */
async function openServer(stage: Stage, name: 'stream' | 'loop', profile: string) {
  const log = await stage.addNamespace(name);
  const isOurs = name === 'stream';
  const key = isOurs ? await stage.addDemoKey(log.namespace) : undefined;
  const { pid, port } = await stage.start('stream', log.namespace, {
    nodeArgs: profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profile)}`],
    ...(isOurs ? {} : { entry: 'fanout/publish-loop-main.js' }),
  });
  const load = await startLoad({ via: 'direct', log, symbols: SYMBOLS });
  stage.onStop(load.stop);
  return { name, url: `ws://127.0.0.1:${port}/api/stream`, saysLive: isOurs, key, pid, load };
}
