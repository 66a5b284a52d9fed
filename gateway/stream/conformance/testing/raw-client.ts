import { once } from 'node:events';
import net from 'node:net';
import { createFrameReader, OPCODE, type ServerFrame, textFrame } from './wire.ts';

export interface HandshakeShape {
  readonly method?: string;
  readonly path?: string;
  readonly version?: string;
  /** A null header is left out. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

/** How the server ended a connection. */
export interface Ending {
  /** Code of the close frame; undefined if TCP ended without one. */
  readonly code: number | undefined;
  readonly reason: string;
  readonly tcp: 'end' | 'reset';
}

/** A TCP connection that sends arbitrary bytes and reads like a strict WebSocket client. */
export interface RawClient {
  readonly socket: net.Socket;
  /** The HTTP response so far; including the body if no WebSocket was opened. */
  head(): string;
  /** Text frames so far, parsed. */
  readonly frames: readonly Readonly<Record<string, unknown>>[];
  readonly controls: readonly ServerFrame[];
  /** How the server violated RFC 6455; undefined if it did not. */
  violation(): string | undefined;
  readonly ended: Promise<Ending>;
  /**
   * Calls `probe` after each input, the end included, until it is true.
   * @throws when it stays false until the time limit.
   */
  until(what: string, probe: () => boolean): Promise<void>;
  write(...parts: readonly (string | Buffer)[]): void;
  send(frame: object): void;
  /** Ends TCP with a reset. */
  abort(): void;
}

/** Time limit of an answer on a machine that is busy with other tests. */
const PATIENCE_MS = 60_000;
export const STREAM_PATH = '/api/stream';

/** Text of a handshake as in RFC 6455 section 4.1, with the changes of `shape`. */
export function handshakeText(shape: HandshakeShape = {}): string {
  const headers = {
    Host: 'stream.test',
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version': '13',
    ...shape.headers,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${value}`],
  );
  const { method = 'GET', path = STREAM_PATH, version = 'HTTP/1.1' } = shape;
  return `${[`${method} ${path} ${version}`, ...lines].join('\r\n')}\r\n\r\n`;
}

const open = new Set<net.Socket>();

export function closeRawClients(): void {
  for (const socket of open) socket.destroy();
  open.clear();
}

/** Opens TCP without sending anything. */
export async function openRaw(port: number): Promise<RawClient> {
  const socket = net.connect({ port, host: '127.0.0.1' });
  socket.setNoDelay(true);
  open.add(socket);
  const frames: Record<string, unknown>[] = [];
  const controls: ServerFrame[] = [];
  const read = createFrameReader();
  let head = '';
  let isOpen = false;
  let violation: string | undefined;
  let close: { readonly code: number; readonly reason: string } | undefined;
  let tcp: Ending['tcp'] = 'end';
  const looks = new Set<() => void>();
  const lookAgain = () => {
    for (const look of looks) look();
  };
  const take = (bytes: Buffer) => {
    for (const frame of read(bytes)) {
      if (close !== undefined) throw new Error('A frame after the close frame.');
      if (frame.opcode === OPCODE.text) frames.push(JSON.parse(frame.payload.toString('utf8')));
      else controls.push(frame);
      if (frame.opcode === OPCODE.close) close = readClose(frame.payload);
    }
  };
  socket.on('data', (chunk) => {
    try {
      if (isOpen) {
        take(chunk);
        return;
      }
      head += chunk.toString('latin1');
      const end = head.indexOf('\r\n\r\n') + 4;
      // A response that opens no WebSocket stays text.
      if (end < 4 || !head.startsWith('HTTP/1.1 101 ')) return;
      isOpen = true;
      const rest = Buffer.from(head.slice(end), 'latin1');
      head = head.slice(0, end);
      take(rest);
    } catch (error) {
      violation ??= (error as Error).message;
    }
  });
  socket.on('data', lookAgain);
  const ended = new Promise<Ending>((resolve) => {
    socket.once('close', () => {
      open.delete(socket);
      setImmediate(lookAgain);
      resolve({ code: close?.code, reason: close?.reason ?? '', tcp });
    });
  });
  socket.on('error', () => {
    tcp = 'reset';
  });
  await once(socket, 'connect');
  return {
    ...{ socket, frames, controls, ended },
    head: () => head,
    violation: () => violation,
    until: (what, probe) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (!probe()) return;
          looks.delete(look);
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(() => {
          looks.delete(look);
          const types = frames.map(({ type }) => type).slice(-5);
          reject(new Error(`Waited ${PATIENCE_MS} ms for ${what}; last: ${types.join(', ')}`));
        }, PATIENCE_MS);
        looks.add(look);
        look();
      }),
    write: (...parts) => void socket.write(Buffer.concat(parts.map((part) => Buffer.from(part)))),
    send: (frame) => void socket.write(textFrame(JSON.stringify(frame))),
    abort: () => void socket.resetAndDestroy(),
  };
}

function readClose(payload: Buffer) {
  if (payload.length < 2) return { code: 1005, reason: '' };
  return { code: payload.readUInt16BE(), reason: payload.subarray(2).toString('utf8') };
}
