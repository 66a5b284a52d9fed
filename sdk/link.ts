import type { ServerFrame } from './frames.ts';
import type { WebSocketClass } from './web-socket.ts';

export const LINK_LIMITS = {
  /** From the attempt to connect until `welcome`. */
  welcomeTimeoutMs: 10_000,
  /** Heartbeats that may fail to come before the connection counts as dead. */
  heartbeatsMissed: 2,
  /** How late a timer may find that nothing came, because this process itself was busy. */
  busyGraceMs: 100,
  /** For the closing handshake, after `close()`. */
  closeTimeoutMs: 1_000,
} as const;

export interface LinkOptions {
  /** With its ticket, if there is one. */
  readonly url: string;
  /** Sent as the first frame, which works in browsers too. */
  readonly key: string | undefined;
  readonly webSocket: WebSocketClass;
  readonly onFrame: (frame: ServerFrame) => void;
  /** No frame came for so many ms: the socket is given up. `onClosed` follows. */
  readonly onDead: (silentMs: number) => void;
  /** Called once; 1006 when nobody said why. */
  readonly onClosed: (code: number, reason: string) => void;
}

/** One WebSocket, from the attempt to connect to its end. */
export interface Link {
  send(frame: object): void;
  /** Stops and goes on reading, so that the server is held back. @returns false: cannot be done */
  pause(): boolean;
  resume(): void;
  /** Closes it with 1000; nothing is told any more. */
  close(): void;
}

/** Opens a link. What it has to say it says in later turns of the event loop. */
export function openLink(options: LinkOptions): Link {
  const { key, onFrame, onDead, onClosed } = options;
  const socket = new options.webSocket(options.url);
  let isEnded = false;
  let isPaused = false;
  let lastFrameAt = performance.now();
  let silentMaxMs: number = LINK_LIMITS.welcomeTimeoutMs;
  let problem = '';
  let timer: ReturnType<typeof setTimeout> | undefined;

  const end = (code: number, reason: string) => {
    if (isEnded) return;
    isEnded = true;
    clearTimeout(timer);
    onClosed(code, reason);
  };
  const giveUp = (code: number, reason: string) => {
    if (socket.terminate === undefined) socket.close();
    else socket.terminate();
    end(code, reason);
  };
  const watch = (delayMs: number, isCertain: boolean) => {
    timer = setTimeout(() => {
      const silentMs = performance.now() - lastFrameAt;
      if (isPaused || silentMs < silentMaxMs) watch(Math.max(1, silentMaxMs - silentMs), false);
      // Frames may wait behind this timer when the process was busy: they are read first.
      else if (!isCertain) watch(LINK_LIMITS.busyGraceMs, true);
      else {
        onDead(Math.round(silentMs));
        giveUp(1006, `no frame in ${Math.round(silentMs)} ms`);
      }
    }, delayMs);
  };
  watch(silentMaxMs, false);

  socket.onopen = () => {
    if (key !== undefined) socket.send(JSON.stringify({ op: 'auth', key, id: 'auth' }));
  };
  socket.onmessage = ({ data }: { readonly data: unknown }) => {
    if (isEnded) return;
    lastFrameAt = performance.now();
    const frame = parseFrame(data);
    if (frame === undefined) {
      giveUp(1006, 'a frame that is no JSON object');
      return;
    }
    if (frame.type === 'welcome') {
      silentMaxMs = frame.heartbeat_ms * LINK_LIMITS.heartbeatsMissed;
      clearTimeout(timer);
      watch(silentMaxMs, false);
    }
    onFrame(frame);
  };
  socket.onerror = ({ message }: { readonly message?: string }) => {
    problem = message ?? '';
  };
  socket.onclose = ({ code, reason }: { readonly code: number; readonly reason: string }) => {
    end(code, reason === '' ? problem : reason);
  };

  return {
    send(frame) {
      if (!isEnded) socket.send(JSON.stringify(frame));
    },
    pause() {
      if (isEnded || socket.pause === undefined) return isEnded;
      isPaused = true;
      socket.pause();
      return true;
    },
    resume() {
      if (!isPaused) return;
      isPaused = false;
      lastFrameAt = performance.now();
      socket.resume?.();
    },
    close() {
      isEnded = true;
      clearTimeout(timer);
      // Else the closing handshake would never be read.
      if (isPaused) socket.resume?.();
      const last = setTimeout(() => socket.terminate?.(), LINK_LIMITS.closeTimeoutMs);
      socket.onclose = () => clearTimeout(last);
      socket.close(1000);
    },
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
