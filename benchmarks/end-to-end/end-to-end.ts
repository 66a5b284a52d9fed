import { setTimeout as sleep } from 'node:timers/promises';
import type { StackFile } from '../../lib/stack-file.ts';
import { monotonicMicros } from '../clock.ts';
import { describeMachine, type Machine } from '../machine.ts';
import { startLoad } from './load.ts';
import { openLogWatch } from './log-watch.ts';
import { LATENESS_P99_MAX_MICROS, type LoadPlan, type LoadReport } from './plan.ts';
import { type CpuByProcess, type CpuReader, cpuBetween, openCpuReader } from './process-cpu.ts';
import type { Watch, WatchReport } from './tally.ts';
import { openWatch } from './watch.ts';

export interface EndToEndOptions {
  readonly stack: Pick<StackFile, 'ingest' | 'stream' | 'kafka' | 'registry'>;
  /** Beside it lies which processes there are; undefined tells no CPU but the benchmark's own. */
  readonly stackFile: string | undefined;
  readonly rates: readonly number[];
  readonly seconds: number;
  /** Load before the first run that is not counted: the JVM and V8 compile what is hot. */
  readonly warmUpSeconds: number;
  readonly clients: number;
  readonly symbols: number;
  /** Keep-alive connections to ingest; a pill never waits for one as long as they are enough. */
  readonly connections: number;
  readonly namespace: string;
  readonly credential: string | undefined;
  readonly apiKey: string | undefined;
  readonly say: (line: string) => void;
}

/** One rate, one way in. Times in µs from the planned send. */
export interface EndToEndRun {
  readonly via: LoadPlan['via'];
  readonly perS: number;
  readonly pills: number;
  /** False where the generator was late itself: then the figures measure it, not the service. */
  readonly valid: boolean;
  readonly load: LoadReport;
  readonly watch: WatchReport;
  /** CPU seconds by process, from the first planned pill to the last arrival. */
  readonly cpu: CpuByProcess;
}

export interface EndToEndResult {
  readonly benchmark: 'end-to-end';
  readonly at: string;
  readonly machine: Machine;
  readonly clients: number;
  readonly symbols: number;
  readonly seconds: number;
  readonly runs: readonly EndToEndRun[];
  /** Cores that each process takes while nothing is sent. */
  readonly idleCores: CpuByProcess;
}

/** Between the order to run and the first planned pill. */
const HEAD_START_MICROS = 500_000;

/** This process holds the sockets, and the consumer of the log alone. */
const READERS = 'sockets';

/** How long the processes are watched while nothing is sent. */
const IDLE_SECONDS = 3;

/** Pace of the warm-up: below what a cold stack takes. */
const WARM_UP_PER_S = 300;

/**
 * Measures POST→ok, POST→socket and produce→socket at each rate, open loop, and before them the
 * log alone at the same rate: what is compared between machines is the ratio to it.
 */
export async function measureEndToEnd(options: EndToEndOptions): Promise<EndToEndResult> {
  const { rates, seconds, clients, symbols, say } = options;
  const machine = describeMachine();
  const cpu = openCpuReader(options.stackFile);
  const runs: EndToEndRun[] = [];
  const measureAll = async (watch: Watch, via: LoadPlan['via'], logTopic: string) => {
    for (const perS of rates) {
      say(`${via}: ${perS} pills/s for ${seconds} s`);
      const run = await measureOne({ ...options, logTopic }, cpu, watch, via, perS);
      const { delivered, lost, doubled } = run.watch;
      const [p99, late] = [delivered.p99, run.load.lateness.p99].map((one) =>
        (one / 1e3).toFixed(2),
      );
      const validity = run.valid ? '' : ': INVALID';
      say(
        `  delivered p99 ${p99} ms, lost ${lost}, doubled ${doubled}; ${late} ms late${validity}`,
      );
      runs.push(run);
    }
  };
  let idleCores: CpuByProcess = {};
  const log = await openLogWatch(options.stack.kafka);
  const sockets = await openWatch({
    stream: options.stack.stream,
    clients,
    apiKey: options.apiKey,
  });
  say(`${clients} sockets are live`);
  try {
    for (const via of ['http', 'direct'] as const) {
      say(`warm-up, not counted: ${via}, ${WARM_UP_PER_S} pills/s for ${options.warmUpSeconds} s`);
      const warmUp = { ...options, seconds: options.warmUpSeconds, logTopic: log.topic };
      if (options.warmUpSeconds > 0) await measureOne(warmUp, cpu, sockets, via, WARM_UP_PER_S);
    }
    say(`nothing is sent for ${IDLE_SECONDS} s: what the processes take then`);
    idleCores = await measureIdle(cpu);
    await measureAll(log, 'log', log.topic);
    await measureAll(sockets, 'http', log.topic);
    await measureAll(sockets, 'direct', log.topic);
  } finally {
    await Promise.all([sockets.close(), log.close()]);
  }
  const at = new Date().toISOString();
  return { benchmark: 'end-to-end', at, machine, clients, symbols, seconds, runs, idleCores };
}

async function measureOne(
  options: EndToEndOptions & { readonly logTopic: string },
  cpu: CpuReader,
  watch: Watch,
  via: LoadPlan['via'],
  perS: number,
): Promise<EndToEndRun> {
  const { stack, seconds } = options;
  const names = Array.from({ length: options.symbols }, (_, i) => `BENCH.${i}`);
  const plan: LoadPlan = {
    via,
    run: `bench-${Date.now().toString(36)}`,
    perS,
    pills: Math.round(perS * seconds),
    symbols: names,
    startMicros: 0,
    ingest: stack.ingest,
    credential: options.credential,
    connections: options.connections,
    kafka: stack.kafka,
    registry: stack.registry,
    namespace: options.namespace,
    logTopic: options.logTopic,
  };
  const load = await startLoad(plan);
  try {
    await sleep(1_000); // what the warm-up has left behind (rest of frames, compilation) settles
    const timed = { ...plan, startMicros: monotonicMicros() + HEAD_START_MICROS };
    watch.begin(timed);
    const pids = { 'load generator': load.pid, [READERS]: process.pid };
    const before = cpu.read(pids);
    const told = await load.run(timed);
    const seen = await watch.end(told.failed);
    const taken = cpuBetween(before, cpu.read(pids));
    const valid = told.lateness.p99 <= LATENESS_P99_MAX_MICROS;
    return { via, perS, pills: plan.pills, valid, load: told, watch: seen, cpu: taken };
  } finally {
    load.stop();
  }
}

async function measureIdle(cpu: CpuReader): Promise<CpuByProcess> {
  const before = cpu.read({ [READERS]: process.pid });
  await sleep(IDLE_SECONDS * 1_000);
  const taken = cpuBetween(before, cpu.read({ [READERS]: process.pid }));
  return Object.fromEntries(
    Object.entries(taken).map(([name, seconds]) => [name, seconds / IDLE_SECONDS]),
  );
}

/** Whether a result proves anything good: valid, nothing lost, doubled or unacknowledged. */
export function isClean({ valid, load, watch }: EndToEndRun): boolean {
  return valid && watch.lost === 0 && watch.doubled === 0 && load.failed.length === 0;
}
