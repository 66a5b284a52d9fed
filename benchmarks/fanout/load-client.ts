import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../lib/root.ts';

/** What the sockets of a load client are now. */
export interface ClientState {
  readonly open: number;
  /** Sockets that were told `live`. */
  readonly live: number;
  readonly closed: number;
  /** Of them with code 4001, as slow consumers. */
  readonly slow: number;
  /** `error` frames. */
  readonly errors: number;
  /** The first of these, or how a socket ended. */
  readonly told: string;
}

/** What a load client got of a run. */
export interface ClientReport extends Pick<ClientState, 'closed' | 'slow' | 'errors' | 'told'> {
  readonly sockets: number;
  /** Pills over all sockets, each once a socket. */
  readonly received: number;
  readonly receivedMin: number;
  readonly receivedMax: number;
  /** What pills say was left out before them; 0 unless the client is narrow. */
  readonly skipped: number;
  /** Pills that a socket got again. */
  readonly doubled: number;
  /** Frames with pills of the run, and bytes of their text. */
  readonly frames: number;
  readonly bytes: number;
  readonly reads: number;
  /** Planned send to the pill in the client's hands: upper µs of a bucket, and its count. */
  readonly histogram: readonly (readonly [number, number])[];
}

/** The compiled load client, with its sockets. */
export interface LoadClient {
  readonly pid: number;
  state(): Promise<ClientState>;
  /** Resolves when all sockets are open, and told `live` where the server says so. */
  ready(): Promise<void>;
  begin(run: string, pills: number): Promise<void>;
  received(): Promise<number>;
  report(): Promise<ClientReport>;
  /** Stops reading all sockets, and goes on. */
  pause(): Promise<void>;
  goOn(): Promise<void>;
  /** Closes the sockets; resolves when it is gone. */
  stop(): Promise<void>;
}

export interface LoadClientOptions {
  readonly binary: string;
  readonly url: string;
  /** Sent as X-API-Key. */
  readonly key: string | undefined;
  readonly sockets: number;
  /** Whether the server says `live` once a subscription holds. */
  readonly saysLive: boolean;
  /** Socket i sends the one at i modulo their number. */
  readonly subscribeFrames: readonly string[];
  /** Small receive buffers: the server soon feels it when they stop reading. */
  readonly narrow?: boolean;
  /** For the file of these frames. */
  readonly folder: string;
}

const SOURCE = path.join(packageRoot, 'benchmarks', 'fanout', 'client.c');
const READY_MAX_MS = 20_000;
const STOP_MAX_MS = 2_000;
/** For a server that does not say when a subscription holds. */
const SUBSCRIBED_MS = 1_500;

/** Compiles the load client into a folder. @returns its path. @throws what to install */
export function buildLoadClient(folder: string): string {
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
  return binary;
}

let files = 0;

/** Starts the load client; its sockets are opening when this returns. */
export function startLoadClient(options: LoadClientOptions): LoadClient {
  const { hostname, port, pathname, search } = new URL(options.url);
  const { saysLive } = options;
  files += 1;
  const file = path.join(options.folder, `subscribe-${files}`);
  writeFileSync(file, `${options.subscribeFrames.join('\n')}\n`);
  const child = spawn(
    options.binary,
    [
      ...[hostname, port || '80', pathname + search, String(options.sockets), file],
      ...(saysLive ? ['live'] : []),
    ],
    {
      env: {
        ...(options.key === undefined ? {} : { WS_KEY: options.key }),
        ...(options.narrow === true ? { WS_NARROW: '1' } : {}),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  );
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint += chunk.toString('utf8');
  });
  child.stdin.on('error', () => undefined); // its exit tells
  const waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  let ended: Error | undefined;
  const gone = new Promise<void>((resolve) => {
    const end = (why: string) => {
      ended ??= new Error(`The load client ended (${why}). ${complaint}`);
      for (const { reject } of waiting.splice(0)) reject(ended);
      resolve();
    };
    child.once('error', (error) => end(error.message));
    child.once('close', (code, signal) => end(String(code ?? signal)));
  });
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.resolve(line));
  const ask = async <T>(command: string): Promise<T> => {
    if (ended !== undefined) throw ended;
    const line = await new Promise<string>((resolve, reject) => {
      waiting.push({ resolve, reject });
      child.stdin.write(`${command}\n`);
    });
    return JSON.parse(line) as T;
  };
  const state = () => ask<ClientState>('state');
  return {
    pid: child.pid ?? -1,
    state,
    async ready() {
      const deadline = performance.now() + READY_MAX_MS;
      for (;;) {
        const { open, live, closed, told } = await state();
        if (closed > 0) throw new Error(`${closed} sockets were closed: ${told}`);
        if (open === options.sockets && (!saysLive || live === open)) break;
        if (performance.now() > deadline) {
          throw new Error(`Of ${options.sockets} sockets ${open} are open, ${live} live. ${told}`);
        }
        await sleep(50);
      }
      if (!saysLive) await sleep(SUBSCRIBED_MS);
    },
    async begin(run, pills) {
      await ask(`run ${run} ${pills}`);
    },
    received: async () => (await ask<{ received: number }>('count')).received,
    report: () => ask<ClientReport>('report'),
    async pause() {
      await ask('pause');
    },
    async goOn() {
      await ask('go on');
    },
    async stop() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
      await gone;
      clearTimeout(timer);
    },
  };
}
