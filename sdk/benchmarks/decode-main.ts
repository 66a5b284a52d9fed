// Pills a second of the client's own path, without a network: from the bytes of frames to items of the
// iterator, and the memory that it takes. Prints a line of JSON after each million pills.
// node dist/sdk/benchmarks/decode-main.js [MILLIONS]
import { setImmediate as turn } from 'node:timers/promises';
import { createClientOn } from '../client.ts';
import type { WebSocketLike } from '../stream/client-socket.ts';

const SYMBOLS = 50;
const PILLS_A_FRAME = 8;
const FRAMES_A_ROUND = 12_500;
const ROUND_PILLS = PILLS_A_FRAME * FRAMES_A_ROUND;
/** Frames that one read of a socket brings. */
const FRAMES_A_READ = 32;

/** A round of frames, whose chains continue those of the round before. */
function framesFrom(start: number): readonly Buffer[] {
  return Array.from({ length: FRAMES_A_ROUND }, (_, frame) => {
    const pills = Array.from({ length: PILLS_A_FRAME }, (_one, at) => {
      const number = start + frame * PILLS_A_FRAME + at;
      return {
        cursor: `0-${number}`,
        prev: number >= SYMBOLS ? `0-${number - SYMBOLS}` : null,
        id: `bench-${number}`,
        timestamp: '2026-11-20T01:02:03.004000Z',
        symbol: `BENCH.${number % SYMBOLS}`,
        gross_spread_percent: 0.1261,
        market_state: 'open',
        confidence: 88,
        received_at: '2026-11-20T01:02:03.011000Z',
      };
    });
    const sent_at = '2026-11-20T01:02:03.019000Z';
    return Buffer.from(JSON.stringify({ type: 'pills', sent_at, pills }));
  });
}

let opened: (socket: FedSocket) => void;
const socketOpened = new Promise<FedSocket>((resolve) => {
  opened = resolve;
});

/** A socket whose server is this program; it stops while the client has paused it. */
class FedSocket implements WebSocketLike {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  #continues: (() => void) | undefined;
  #isPaused = false;

  constructor() {
    queueMicrotask(() => this.onopen?.({} as never));
  }

  #say(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }

  send(text: string): void {
    const { op, id } = JSON.parse(text);
    queueMicrotask(() => {
      const session = { session: 's', tier: 'pro', epoch: 'k', heartbeat_ms: 3_600_000 };
      if (op === 'auth') return this.#say({ type: 'welcome', ...session });
      const answer = { accepted: ['*'], rejected: [], never_seen: [], recovered: null };
      this.#say({ type: 'subscribed', id, ...answer, reason: null, position: 'k:' });
      this.#say({ type: 'live', id, replayed: 0, position: 'k:' });
      return opened(this);
    });
  }

  async feed(frames: readonly Buffer[]): Promise<void> {
    for (const [number, data] of frames.entries()) {
      if (this.#isPaused) await new Promise<void>((resolve) => (this.#continues = resolve));
      // As `ws` hands over text.
      this.onmessage?.({ data: data.toString() } as never);
      if (number % FRAMES_A_READ === 0) await turn();
    }
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#continues?.();
  }

  close(): void {
    this.onclose?.({ code: 1000, reason: '' } as never);
  }
}

async function measure(millions: number): Promise<void> {
  const options = { streamUrl: 'ws://127.0.0.1', key: 'k' };
  const client = createClientOn(FedSocket, options, { sendsHeaders: true });
  const items = client.stream({ symbols: '*', snapshot: false })[Symbol.asyncIterator]();
  const first = items.next();
  const socket = await socketOpened;
  let pending: ReturnType<typeof items.next> | undefined = first;
  let [pills, spentMs, cpuMs] = [0, 0, 0];
  for (let round = 0; round < millions * 10; round += 1) {
    const frames = framesFrom(pills);
    const beganMs = performance.now();
    const cpu = process.cpuUsage();
    const fed = socket.feed(frames);
    for (let read = 0; read < ROUND_PILLS; read += 1) {
      const { value } = await (pending ?? items.next());
      pending = undefined;
      if (value?.type !== 'pill') throw new Error(`Not a pill: ${JSON.stringify(value)}`);
    }
    await fed;
    spentMs += performance.now() - beganMs;
    const { user, system } = process.cpuUsage(cpu);
    cpuMs += (user + system) / 1_000;
    pills += ROUND_PILLS;
    if (pills % 1_000_000 === 0) {
      const maxRssMib = process.resourceUsage().maxRSS / 1_024;
      const [perS, perCpuS] = [spentMs, cpuMs].map((ms) => (pills / ms) * 1_000);
      console.log(JSON.stringify({ pills, perS, perCpuS, maxRssMib }));
    }
  }
}

await measure(Number(process.argv[2] ?? 10));
process.exit();
