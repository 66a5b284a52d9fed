import { WebSocket } from 'ws';
import { waitFor } from '../../../testing/wait.ts';
import { decodeFrame } from './decode-frame.ts';
import { faultOfFrame } from './frame-check.ts';

/** The fields of a pill in a `pill`, `pills` or `snapshot` frame that tests read. */
export interface GotPill {
  readonly cursor: string;
  readonly prev: string | null;
  readonly id: string;
  readonly symbol: string;
  readonly late?: true;
  readonly backfill?: true;
  readonly replayed?: true;
  readonly skipped?: number;
}

/** The fields that tests read; fields that are only compared need no entry. */
interface FrameFields {
  readonly welcome: { readonly epoch: string; readonly session: string };
  readonly subscribed: {
    readonly id: string;
    readonly accepted: readonly string[];
    readonly never_seen: readonly string[];
    readonly recovered: boolean | null;
    readonly reason: string | null;
    readonly replaying: number;
    readonly oldest?: string;
    readonly position: string;
  };
  readonly gap: {
    readonly symbols: readonly string[];
    readonly after: string | null;
    readonly until: string;
    readonly reason: string;
    readonly fill: string | null;
    readonly fill_free: boolean;
  };
  readonly quiet: {
    readonly symbol: string;
    readonly venue?: string;
    readonly reason: string;
    readonly since: string | null;
    readonly until: string | null;
    readonly late_after_ms?: number;
    readonly over?: true;
    readonly count?: number;
    readonly symbols?: readonly string[];
  };
  readonly unsubscribed: { readonly symbols: readonly string[] };
  readonly snapshot: {
    readonly pills: readonly (GotPill & { readonly last_cursor: string | null })[];
    readonly last: boolean;
  };
  readonly live: { readonly position: string; readonly replayed: number };
  readonly pill: GotPill;
  readonly pills: { readonly pills: readonly GotPill[] };
  readonly heartbeat: {
    readonly position: string;
    readonly sent: number;
    readonly filtered: number;
    readonly skipped: number;
    readonly generator: {
      readonly state: string;
      readonly in_session: boolean | null;
      readonly late_after_ms: number;
    };
  };
  readonly drain: {
    readonly position: string;
    readonly grace_ms: number;
    readonly reconnect_after_ms: number;
  };
  readonly error: {
    readonly code: string;
    readonly close?: number;
    readonly position?: string | null;
    readonly sessions?: readonly object[];
  };
  readonly status: { readonly state: string };
  readonly pong: { readonly t?: number };
}

export type FrameType = keyof FrameFields;
/** A frame of one type, not checked. */
export type FrameOf<T extends FrameType> = { readonly type: T } & FrameFields[T];
export type Frame = { [T in FrameType]: FrameOf<T> }[FrameType];

/** The new pills of a frame; empty for frames without pills. */
export function pillsOf(frame: Frame): readonly GotPill[] {
  if (frame.type === 'pill') return [frame];
  return frame.type === 'pills' ? frame.pills : [];
}

export function framesOf<T extends FrameType>(frames: readonly Frame[], type: T): FrameOf<T>[] {
  return frames.filter((frame): frame is Frame & FrameOf<T> => frame.type === type);
}

/** A WebSocket client that keeps every frame. */
export interface Client {
  /** The subprotocol that the server chose; empty if none. */
  readonly protocol: string;
  readonly frames: readonly Frame[];
  /** The pills of all `pill` and `pills` frames so far. */
  pills(): readonly GotPill[];
  send(frame: object): void;
  /** A string as text, a buffer as a binary frame. */
  sendRaw(frame: string | Buffer): void;
  /** Bytes as a text frame, valid or not. */
  sendText(bytes: Buffer): void;
  /** The next frame of this type that no earlier call has returned. */
  until<T extends FrameType>(type: T, timeoutMs?: number): Promise<FrameOf<T>>;
  pause(): void;
  resume(): void;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

/** The server answers in milliseconds; on a machine that is busy with other tests, in seconds. */
const ANSWER_MS = 60_000;
const open = new Set<WebSocket>();
const faults: string[] = [];

/** @throws when a client received a frame that does not match its schema */
export function closeClients(): void {
  for (const socket of open) socket.terminate();
  open.clear();
  const [fault] = faults.splice(0);
  if (fault !== undefined) throw new Error(fault);
}

export interface ConnectOptions {
  /** Several are sent as several headers. */
  readonly origin?: string | string[];
  /** Subprotocols, best first. */
  readonly protocols?: readonly string[];
  /** The X-API-Key header; omitted if undefined. */
  readonly key?: string;
}

/** Connects like `connect`, and also while nothing listens yet. */
export function enter(url: string, options: ConnectOptions = {}): Promise<Client> {
  return waitFor('the stream to be reachable', () => connect(url, options));
}

/**
 * Connects; with a key or a ticket, it also waits for the first frame. It connects again while that
 * is `accounts_unavailable`: a lookup may take half a second, and a PostgreSQL that is busy with
 * other tests takes longer.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<Client> {
  if (options.key === undefined && !url.includes('?ticket=')) return connectOnce(url, options);
  const deadline = performance.now() + ANSWER_MS;
  for (;;) {
    const client = await connectOnce(url, options);
    let isClosed = false;
    void client.closed.then(() => {
      isClosed = true;
    });
    await waitFor('a frame', () => isClosed || client.frames.length > 0, ANSWER_MS);
    const [first] = client.frames;
    const isUnavailable = first?.type === 'error' && first.code === 'accounts_unavailable';
    if (!isUnavailable || performance.now() > deadline) return client;
    await client.closed;
  }
}

/** Connects once, and waits for the handshake only. */
export async function connectOnce(url: string, options: ConnectOptions = {}): Promise<Client> {
  const { origin, key, protocols = [] } = options;
  const socket = new WebSocket(url, [...protocols], {
    // The types lack lists, which Node sends as several headers.
    headers: {
      ...(origin === undefined ? {} : { origin }),
      ...(key === undefined ? {} : { 'x-api-key': key }),
    } as Record<string, string>,
    perMessageDeflate: false,
  });
  open.add(socket);
  const frames: Frame[] = [];
  const pills: GotPill[] = [];
  const positions = new Map<FrameType, number>();
  const waiting = new Set<() => void>();
  socket.on('message', (data: Buffer, isBinary) => {
    const frame = decodeFrame(data, isBinary) as Frame;
    const fault = faultOfFrame(frame);
    if (fault !== undefined) faults.push(fault);
    frames.push(frame);
    pills.push(...pillsOf(frame));
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
    protocol: socket.protocol,
    frames,
    pills: () => pills,
    send: (frame) => socket.send(JSON.stringify(frame)),
    sendRaw: (frame) => socket.send(frame),
    sendText: (bytes) => socket.send(bytes, { binary: false }),
    until<T extends FrameType>(type: T, timeoutMs = ANSWER_MS) {
      return new Promise<FrameOf<T>>((resolve, reject) => {
        const check = () => {
          const at = frames.findIndex((f, i) => f.type === type && i >= (positions.get(type) ?? 0));
          if (at < 0) return;
          positions.set(type, at + 1);
          waiting.delete(check);
          clearTimeout(timer);
          resolve(frames[at] as FrameOf<T>);
        };
        const timer = setTimeout(() => {
          waiting.delete(check);
          const types = frames.slice(-10).map((f) => (f.type === 'error' ? `${f.code}` : f.type));
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
