import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';
import { monotonicMicros } from '../clock.ts';
import { createLatencies, type Percentiles } from '../histogram.ts';
import { type LoadPlan, pillNumber, plannedMicros } from './plan.ts';

/** What the sockets saw of a run. */
export interface WatchReport {
  /** Planned send to the frame in the client's hands, over all clients. */
  readonly delivered: Percentiles;
  readonly deliveredEncoded: string;
  /** The p99 of each client, in µs. */
  readonly p99ByClient: readonly number[];
  /** Acknowledged pills that a client did not get, summed over the clients. */
  readonly lost: number;
  /** Pills that a client got twice or more, summed over the clients. */
  readonly doubled: number;
  /** Frames of trouble (gap, error, drain) and closed sockets, counted. */
  readonly remarks: Readonly<Record<string, number>>;
  /** How late this process's own event loop was at the 99th percentile, in µs. */
  readonly eventLoopP99: number;
}

export interface Watch {
  /** Counts from now on for this run. */
  begin(plan: LoadPlan): void;
  /** Waits for what is on its way, then tells. `failed`: pills that nobody acknowledged. */
  end(failed: readonly number[]): Promise<WatchReport>;
  close(): void;
}

export interface WatchOptions {
  readonly stream: string;
  readonly clients: number;
  readonly apiKey: string | undefined;
}

const LIVE_MAX_MS = 15_000;
const ARRIVALS_MAX_MS = 5_000;
const TROUBLE: ReadonlySet<string> = new Set(['gap', 'error', 'drain', 'status']);

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly pills?: readonly { readonly id: string }[];
}

interface Run {
  readonly plan: LoadPlan;
  readonly all: ReturnType<typeof createLatencies>;
  readonly byClient: readonly ReturnType<typeof createLatencies>[];
  /** Times each pill was got, by client. */
  readonly seen: readonly Uint8Array[];
  readonly remarks: Record<string, number>;
  readonly loop: ReturnType<typeof monitorEventLoopDelay>;
  arrived: number;
}

/** Opens the sockets, each subscribed to all symbols; resolves when all are live. */
export async function openWatch(options: WatchOptions): Promise<Watch> {
  let run: Run | undefined;
  const remark = (what: string) => {
    if (run !== undefined) run.remarks[what] = (run.remarks[what] ?? 0) + 1;
  };
  const take = (client: number, id: string, now: number) => {
    if (run === undefined) return;
    const pill = pillNumber(run.plan.run, id);
    if (pill < 0 || pill >= run.plan.pills) return;
    const seen = run.seen[client]!;
    seen[pill] = Math.min(255, seen[pill]! + 1);
    if (seen[pill] > 1) return;
    const micros = now - plannedMicros(run.plan, pill);
    run.all.record(micros);
    run.byClient[client]!.record(micros);
    run.arrived += 1;
  };
  const onFrame = (client: number, text: string) => {
    const now = monotonicMicros();
    const frame = JSON.parse(text) as Frame;
    if (frame.type === 'pill') take(client, frame.id ?? '', now);
    else if (frame.type === 'pills') for (const { id } of frame.pills ?? []) take(client, id, now);
    else if (TROUBLE.has(frame.type)) remark(frame.type);
  };
  const sockets = await Promise.all(
    Array.from({ length: options.clients }, (_, client) =>
      openSocket(options, (text) => onFrame(client, text), remark),
    ),
  );
  return {
    begin(plan) {
      const loop = monitorEventLoopDelay({ resolution: 5 });
      loop.enable();
      run = {
        plan,
        all: createLatencies(),
        byClient: sockets.map(() => createLatencies()),
        seen: sockets.map(() => new Uint8Array(plan.pills)),
        remarks: {},
        loop,
        arrived: 0,
      };
    },
    async end(failed) {
      if (run === undefined) throw new Error('No run has begun.');
      const ended = run;
      const wanted = (ended.plan.pills - failed.length) * sockets.length;
      const deadline = performance.now() + ARRIVALS_MAX_MS;
      while (ended.arrived < wanted && performance.now() < deadline) await sleep(50);
      // A double may still be on its way when the last first one has come.
      await sleep(200);
      run = undefined;
      return reportOf(ended, failed);
    },
    close() {
      for (const socket of sockets) socket.terminate();
    },
  };
}

function reportOf(run: Run, failed: readonly number[]): WatchReport {
  const notAcknowledged = new Set(failed);
  let lost = 0;
  let doubled = 0;
  for (const seen of run.seen) {
    for (const [pill, times] of seen.entries()) {
      if (times === 0 && !notAcknowledged.has(pill)) lost += 1;
      if (times > 1) doubled += 1;
    }
  }
  run.loop.disable();
  return {
    delivered: run.all.percentiles(),
    deliveredEncoded: run.all.encoded(),
    p99ByClient: run.byClient.map((one) => one.percentiles().p99),
    lost,
    doubled,
    remarks: run.remarks,
    eventLoopP99: Math.round(run.loop.percentile(99) / 1000),
  };
}

function openSocket(
  { stream, apiKey }: WatchOptions,
  onFrame: (text: string) => void,
  remark: (what: string) => void,
): Promise<WebSocket> {
  const socket = new WebSocket(`${stream.replace(/\/$/, '')}/api/stream`, {
    perMessageDeflate: false,
    headers: apiKey === undefined ? {} : { 'X-API-Key': apiKey },
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      socket.terminate();
      reject(new Error(`A socket was not live within ${LIVE_MAX_MS} ms.`));
    }, LIVE_MAX_MS);
    socket.on('error', reject);
    socket.on('close', (code, reason) => {
      remark(`closed ${code}`);
      clearTimeout(timer);
      reject(new Error(`The stream closed a socket: ${code} ${reason.toString()}`));
    });
    socket.on('message', (data: Buffer) => {
      const text = data.toString('utf8');
      if (text.startsWith('{"type":"welcome"')) {
        const subscribe = {
          op: 'subscribe',
          id: '1',
          symbols: ['*'],
          mode: 'all',
          snapshot: false,
        };
        socket.send(JSON.stringify(subscribe));
      } else if (text.startsWith('{"type":"live"')) {
        clearTimeout(timer);
        resolve(socket);
      } else onFrame(text);
    });
  });
}
