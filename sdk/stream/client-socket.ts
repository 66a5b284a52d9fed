import type { Auth, ServerFrame } from './stream-frames.ts';

/**
 * A WebSocket as browsers have it. `ws` adds `pause`, with which a slow reader holds the server
 * back, and `terminate`, an end without a closing handshake.
 */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number): void;
  pause?(): void;
  resume?(): void;
  terminate?(): void;
}

/** Given to the class only with the option `auth` of the client. */
export interface SocketOptions {
  /** Headers of the handshake. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type WebSocketClass = new (url: string, options?: never) => WebSocketLike;

const SOCKET_LIMITS = {
  /** From the attempt to connect until `welcome`. */
  welcomeTimeoutMs: 10_000,
  /** Missing heartbeats after which the connection counts as dead. */
  heartbeatsMissed: 2,
  /** Extra wait before a connection counts as dead, in case this process itself was busy. */
  busyGraceMs: 100,
  /** For the closing handshake, after `close()`. */
  closeTimeoutMs: 1_000,
} as const;

interface Connection {
  /** With the ticket, if there is one. */
  readonly url: string;
  /** Sent in the first frame, which works in browsers too. */
  readonly key: string | undefined;
  /** Of the handshake; undefined without `auth`. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly webSocket: WebSocketClass;
  readonly onFrame: (frame: ServerFrame) => void;
  /** No frame came for this many ms: the socket is abandoned. `onClosed` follows. */
  readonly onDead: (silentMs: number) => void;
  /** Called once; with code 1006 if the server gave no code. */
  readonly onClosed: (code: number, reason: string) => void;
}

/** One WebSocket, from the attempt to connect to its end. */
export type Socket = ReturnType<typeof openSocket>;

/** Opens a socket. Its callbacks are called in later turns of the event loop. */
export function openSocket({ key, onFrame, onDead, onClosed, ...options }: Connection) {
  const socket = connect(options);
  let isEnded = false;
  let isPaused = false;
  let problem = '';

  const end = (code: number, reason: string) => {
    if (isEnded) return;
    isEnded = true;
    silence.stop();
    onClosed(code, reason);
  };
  const abandon = (reason: string) => {
    (socket.terminate ?? socket.close).call(socket);
    end(1006, reason);
  };
  const silence = watchSilence((silentMs) => {
    onDead(silentMs);
    abandon(`no frame in ${silentMs} ms`);
  });

  socket.onopen = () => {
    if (key !== undefined)
      socket.send(JSON.stringify({ op: 'auth', key, id: 'auth' } satisfies Auth));
  };
  socket.onmessage = ({ data }: { readonly data: unknown }) => {
    if (isEnded) return;
    silence.frameCame();
    const frame = parseFrame(data);
    if (frame === undefined) return abandon('a frame that is not a JSON object');
    if (frame.type === 'welcome') silence.expectEvery(frame.heartbeat_ms);
    onFrame(frame);
  };
  socket.onerror = ({ message }: { readonly message?: string }) => {
    problem = message ?? '';
  };
  socket.onclose = ({ code, reason }: { readonly code: number; readonly reason: string }) => {
    end(code, reason === '' ? problem : reason);
  };

  return {
    send(frame: object): void {
      if (!isEnded) socket.send(JSON.stringify(frame));
    },
    /** Stops reading, which holds the server back. @returns false if it cannot be paused */
    pause(): boolean {
      if (isEnded || socket.pause === undefined) return isEnded;
      isPaused = true;
      silence.pause();
      socket.pause();
      return true;
    },
    resume(): void {
      if (!isPaused) return;
      isPaused = false;
      silence.resume();
      socket.resume?.();
    },
    /** Closes the socket with 1000; no callback is called any more. */
    close(): void {
      isEnded = true;
      silence.stop();
      // A paused socket would never read the closing handshake.
      if (isPaused) socket.resume?.();
      const timer = setTimeout(() => socket.terminate?.(), SOCKET_LIMITS.closeTimeoutMs);
      socket.onclose = () => clearTimeout(timer);
      socket.close(1000);
    },
  };
}

function connect({ url, headers, webSocket }: Pick<Connection, 'url' | 'headers' | 'webSocket'>) {
  // A browser takes a second argument for a list of protocols.
  return headers === undefined ? new webSocket(url) : new webSocket(url, { headers } as never);
}

/** Calls `onSilent` once no frame has come for the maximum. Pauses do not count. */
function watchSilence(onSilent: (silentMs: number) => void) {
  let lastFrameAt = performance.now();
  let maxMs: number = SOCKET_LIMITS.welcomeTimeoutMs;
  let isPaused = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = (delayMs = maxMs, isCertain = false) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const silentMs = performance.now() - lastFrameAt;
      if (silentMs < maxMs) watch(Math.max(1, maxMs - silentMs));
      // If the process was busy, frames may wait behind this timer: they are read first.
      else if (!isCertain) watch(SOCKET_LIMITS.busyGraceMs, true);
      else onSilent(Math.round(silentMs));
    }, delayMs);
  };
  watch();
  return {
    frameCame() {
      lastFrameAt = performance.now();
    },
    expectEvery(heartbeatMs: number) {
      maxMs = heartbeatMs * SOCKET_LIMITS.heartbeatsMissed;
      if (!isPaused) watch();
    },
    pause() {
      isPaused = true;
      clearTimeout(timer);
    },
    resume() {
      isPaused = false;
      lastFrameAt = performance.now();
      watch();
    },
    stop: () => clearTimeout(timer),
  };
}

function parseFrame(data: unknown): ServerFrame | undefined {
  try {
    const frame: unknown = JSON.parse(String(data));
    return typeof frame === 'object' && frame !== null ? (frame as ServerFrame) : undefined;
  } catch {
    return undefined;
  }
}
