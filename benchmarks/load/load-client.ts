import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { setPriority } from '../../lib/child-process/priority.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import type { Percentiles } from '../harness/histogram.ts';
import type { Arrivals } from './deliveries.ts';
import type { PillRun } from './pill-load.ts';

export type LoadClient = Awaited<ReturnType<OpenClient>>;
export type OpenClient = ReturnType<typeof buildLoadClient>;

/** A WebSocket server that is measured. */
export interface Target {
  /** `ws://…` */
  readonly url: string;
  /** Sent as X-API-Key. */
  readonly key: string | undefined;
  /** Whether it says `live` once a subscription holds. */
  readonly saysLive: boolean;
}

/**
 * The state of a load client's sockets, and their part of a run. `live`: got a `live` frame; `slow`:
 * closed with code 4001, as slow consumers; `errors`: `error` frames. Pills count once a socket:
 * `received` over all sockets, `receivedMin` and `receivedMax` of one socket; `doubled` ones came
 * again, and `skipped` sums the members of that name, with narrow buffers alone. `frames` and the
 * `bytes` of their text are those with pills of the run.
 */
export interface ClientReport
  extends Readonly<
    Record<
      | ('sockets' | 'open' | 'live' | 'closed' | 'slow' | 'errors' | 'received' | 'receivedMin')
      | ('receivedMax' | 'skipped' | 'doubled' | 'frames' | 'bytes' | 'reads'),
      number
    >
  > {
  /** The first `error` frame, or why a socket ended. */
  readonly firstError: string;
  /** Planned send to the pill at the client: upper µs of a bucket, and its count. */
  readonly histogram: Histogram;
}

/** By pill, µs after the run's first planned pill; 0 = never. */
interface SocketArrivals {
  readonly startMicros: number;
  readonly arrivals: readonly number[];
}

type Histogram = readonly (readonly [upperMicros: number, count: number])[];

const SOURCE = path.join(packageRoot, 'benchmarks', 'load', 'client.c');
const READY_MAX_MS = 20_000;
const STOP_MAX_MS = 2_000;
/** For a server that does not say when a subscription holds. */
const SUBSCRIBED_MS = 1_500;

/**
 * Compiles the load client into a folder.
 * @returns opens sockets to a server, and resolves when all of them are subscribed
 * @throws a sentence that names the package to install
 */
export function buildLoadClient(folder: string) {
  const binary = path.join(folder, 'client');
  try {
    execFileSync('cc', ['-O2', '-o', binary, SOURCE], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    const { code, stderr } = error as { code?: string; stderr?: Buffer };
    if (code !== 'ENOENT') throw new Error(`${SOURCE} does not compile:\n${stderr}`);
    throw new Error(
      'This benchmark compiles its load client, and there is no C compiler: install one that is ' +
        'called cc (Debian, Ubuntu: apt install gcc libc6-dev).',
    );
  }
  /**
   * @param frames to subscribe with; socket i sends the one at i modulo their number
   * @param options.narrow small receive buffers: the server soon notices when reading stops
   * @param options.keepsArrivals for `arrivalsAt`
   */
  return async (
    { url, key, saysLive }: Target,
    sockets: number,
    frames: readonly string[],
    options: {
      readonly narrow?: boolean;
      readonly keepsArrivals?: boolean;
      readonly nice?: number;
    } = {},
  ) => {
    const { hostname, port, pathname } = new URL(url);
    const wait = saysLive ? 'live' : 'open';
    const child = spawn(binary, [hostname, port, pathname, String(sockets), wait, ...frames], {
      env: {
        ...(key === undefined ? {} : { WS_KEY: key }),
        ...(options.narrow === true ? { WS_NARROW: '1' } : {}),
        ...(options.keepsArrivals === true ? { WS_ARRIVALS: '1' } : {}),
      },
      // Linux weighs whole sessions (autogroup): in a session of its own, the load client can have
      // a lower priority than the benchmark.
      detached: options.nice !== undefined,
    });
    if (options.nice !== undefined) setPriority(child.pid!, options.nice);
    const client = { pid: child.pid, ...openCommands(child) };
    try {
      await untilReady(client.state, sockets, saysLive);
      return client;
    } catch (error) {
      await client.stop();
      throw error;
    }
  };
}

/** Commands on stdin, a line each, which are answered by a line of JSON. */
function openCommands(child: ChildProcessWithoutNullStreams) {
  let why = '';
  let ended = false;
  child.stderr.on('data', (chunk: Buffer) => {
    why += chunk.toString('utf8');
  });
  child.stdin.on('error', () => undefined); // 'close' of the child follows
  const waiting: ((line: string | undefined) => void)[] = [];
  const gone = new Promise<void>((resolve) => {
    const end = (reason: unknown) => {
      [ended, why] = [true, `${why}(${reason})`];
      for (const answer of waiting.splice(0)) answer(undefined);
      resolve();
    };
    child.once('error', end);
    child.once('close', (code, signal) => end(code ?? signal));
  });
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  const ask = async <T = ClientReport>(command: string): Promise<T> => {
    const line = await new Promise<string | undefined>((resolve) => {
      if (ended) return resolve(undefined);
      waiting.push(resolve);
      child.stdin.write(`${command}\n`);
    });
    if (line === undefined) throw new Error(`The load client ended: ${why}`);
    return JSON.parse(line);
  };
  const state = () => ask('state');
  return {
    state,
    begin: ({ run, pills, startMicros, perS }: PillRun) =>
      ask(`run ${run} ${pills} ${startMicros} ${perS}`),
    arrived: async () => (await state()).received,
    report: () => ask('report'),
    /** The arrivals of the run at a socket; a pill that came again counts once. */
    async arrivalsAt(socket: number): Promise<Arrivals> {
      const { startMicros, arrivals } = await ask<SocketArrivals>(`arrivals ${socket}`);
      return {
        firstMicros: Float64Array.from(arrivals, (since) =>
          since === 0 ? 0 : startMicros + since,
        ),
        times: Uint8Array.from(arrivals, (since) => (since === 0 ? 0 : 1)),
        pills: arrivals.filter((since) => since > 0).length,
      };
    },
    pause: () => ask('pause'),
    resume: () => ask('resume'),
    async stop() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
      await gone;
      clearTimeout(timer);
    },
  };
}

async function untilReady(state: () => Promise<ClientReport>, sockets: number, saysLive: boolean) {
  const isReady = ({ open, live, closed, firstError }: ClientReport) => {
    if (closed > 0) throw new Error(`${closed} sockets were closed: ${firstError}`);
    return open === sockets && (!saysLive || live === open);
  };
  const deadline = performance.now() + READY_MAX_MS;
  for (let now = await state(); !isReady(now); now = await state()) {
    if (performance.now() > deadline) {
      throw new Error(`Of ${sockets} sockets ${now.open} are open, ${now.live} live.`);
    }
    await sleep(50);
  }
  if (!saysLive) await sleep(SUBSCRIBED_MS);
}

/** Percentiles of a report's histogram, whose buckets are in rising order. */
export function percentilesOf(histogram: Histogram): Percentiles {
  const count = histogram.reduce((sum, [, inBucket]) => sum + inBucket, 0);
  const at = (share: number) => {
    const rank = Math.max(1, Math.ceil(count * share));
    let seen = 0;
    for (const [upper, inBucket] of histogram) {
      seen += inBucket;
      if (seen >= rank) return upper;
    }
    return 0;
  };
  return { count, p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1) };
}
