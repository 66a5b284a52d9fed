import { setTimeout as sleep } from 'node:timers/promises';
import type { StackFile } from '../../lib/stack-file.ts';
import { monotonicMicros } from '../clock.ts';
import { describeMachine, type Machine } from '../machine.ts';
import { startLoad } from './load.ts';
import { LATENESS_P99_MAX_MICROS, type LoadPlan, type LoadReport } from './plan.ts';
import { openWatch, type Watch, type WatchReport } from './watch.ts';

export interface EndToEndOptions {
  readonly stack: Pick<StackFile, 'ingest' | 'stream' | 'kafka' | 'registry'>;
  readonly rates: readonly number[];
  readonly seconds: number;
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
}

export interface EndToEndResult {
  readonly benchmark: 'end-to-end';
  readonly at: string;
  readonly machine: Machine;
  readonly clients: number;
  readonly symbols: number;
  readonly seconds: number;
  readonly runs: readonly EndToEndRun[];
}

/** Between the order to run and the first planned pill. */
const HEAD_START_MICROS = 500_000;

/** Measures POST→ok, POST→socket and produce→socket at each rate, open loop. */
export async function measureEndToEnd(options: EndToEndOptions): Promise<EndToEndResult> {
  const { rates, seconds, clients, symbols, say } = options;
  const machine = describeMachine();
  const watch = await openWatch({ stream: options.stack.stream, clients, apiKey: options.apiKey });
  say(`${clients} sockets are live`);
  const runs: EndToEndRun[] = [];
  try {
    for (const via of ['http', 'direct'] as const) {
      for (const perS of rates) {
        say(`${via}: ${perS} pills/s for ${seconds} s`);
        const run = await measureOne(options, watch, via, perS);
        const { delivered, lost, doubled } = run.watch;
        const p99 = (delivered.p99 / 1000).toFixed(2);
        say(`  to socket p99 ${p99} ms, lost ${lost}, doubled ${doubled}`);
        runs.push(run);
      }
    }
  } finally {
    watch.close();
  }
  const at = new Date().toISOString();
  return { benchmark: 'end-to-end', at, machine, clients, symbols, seconds, runs };
}

async function measureOne(
  options: EndToEndOptions,
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
  };
  const load = await startLoad(plan);
  try {
    await sleep(1_000); // what the warm-up has left behind (rest of frames, compilation) settles
    const timed = { ...plan, startMicros: monotonicMicros() + HEAD_START_MICROS };
    watch.begin(timed);
    const told = await load.run(timed);
    const seen = await watch.end(told.failed);
    const valid = told.lateness.p99 <= LATENESS_P99_MAX_MICROS;
    return { via, perS, pills: plan.pills, valid, load: told, watch: seen };
  } finally {
    load.stop();
  }
}

/** Whether a result proves anything good: valid, nothing lost, doubled or unacknowledged. */
export function isClean({ valid, load, watch }: EndToEndRun): boolean {
  return valid && watch.lost === 0 && watch.doubled === 0 && load.failed.length === 0;
}
