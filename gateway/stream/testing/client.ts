import { WebSocket } from 'ws';

// biome-ignore lint/suspicious/noExplicitAny: frames are what the test looks at, field by field
export type Frame = Record<string, any>;

/** A WebSocket client that keeps every frame. */
export interface Client {
  readonly frames: readonly Frame[];
  /** All pills of `pill` and `pills` frames so far. */
  pills(): readonly Frame[];
  send(frame: object): void;
  /** A string as text, a buffer as a binary frame. */
  sendRaw(frame: string | Buffer): void;
  /** Bytes as a text frame, valid or not. */
  sendText(bytes: Buffer): void;
  /** The next frame of a type that no earlier call has returned. */
  until(type: string, timeoutMs?: number): Promise<Frame>;
  pause(): void;
  resume(): void;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

const open = new Set<WebSocket>();

export function closeClients(): void {
  for (const socket of open) socket.terminate();
  open.clear();
}

export async function connect(url: string, options: { origin?: string } = {}): Promise<Client> {
  const socket = new WebSocket(url, { ...options, perMessageDeflate: false });
  open.add(socket);
  const frames: Frame[] = [];
  const pills: Frame[] = [];
  const places = new Map<string, number>();
  const waiting = new Set<() => void>();
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString('utf8'));
    frames.push(frame);
    if (frame.type === 'pill') pills.push(frame);
    if (frame.type === 'pills') pills.push(...frame.pills);
    for (const check of waiting) check();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => undefined);
  return {
    frames,
    pills: () => pills,
    send: (frame) => socket.send(JSON.stringify(frame)),
    sendRaw: (frame) => socket.send(frame),
    sendText: (bytes) => socket.send(bytes, { binary: false }),
    until(type, timeoutMs = 10_000) {
      return new Promise((resolve, reject) => {
        const check = () => {
          const at = frames.findIndex((f, i) => f.type === type && i >= (places.get(type) ?? 0));
          if (at < 0) return;
          places.set(type, at + 1);
          waiting.delete(check);
          clearTimeout(timer);
          resolve(frames[at]!);
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          const types = frames.map((frame) => frame.type).slice(-10);
          reject(new Error(`No ${type} in ${timeoutMs} ms; last: ${types.join(', ')}`));
        }, timeoutMs);
        waiting.add(check);
        check();
      });
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    closed,
  };
}
