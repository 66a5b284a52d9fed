import net from 'node:net';

/**
 * A keep-alive connection with one request in flight. undici takes 2.4 times the CPU (90 µs a
 * request against 37), and on few cores what the client takes is missing to what it measures.
 */
export interface Connection {
  /**
   * Sends a request and calls back once with the answer, status 0 when the connection broke.
   * @param request whole bytes, or ASCII; the answer must have a Content-Length
   */
  ask(request: Buffer | string, onAnswer: (status: number, body: Buffer) => void): void;
  close(): void;
}

/** An answer that is there as a whole. */
export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

const NOTHING = Buffer.alloc(0);

/** Connects to a port of this machine. @throws when nobody listens there */
export async function connect(port: number): Promise<Connection> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  let waiting: ((status: number, body: Buffer) => void) | undefined;
  let partial: Buffer | undefined;
  let isBroken = false;

  const tell = (status: number, body: Buffer) => {
    const told = waiting;
    waiting = undefined;
    told?.(status, body);
  };
  socket.on('data', (chunk) => {
    const bytes = partial === undefined ? chunk : Buffer.concat([partial, chunk]);
    const answer = answerOf(bytes);
    partial = answer === undefined ? bytes : undefined;
    if (answer !== undefined) tell(answer.status, answer.body);
  });
  socket.on('error', () => undefined); // 'close' follows
  socket.on('close', () => {
    isBroken = true;
    tell(0, NOTHING);
  });
  return {
    ask(request, onAnswer) {
      if (isBroken) {
        onAnswer(0, NOTHING);
        return;
      }
      waiting = onAnswer;
      if (typeof request === 'string') socket.write(request, 'latin1');
      else socket.write(request);
    },
    close: () => void socket.destroy(),
  };
}

/** The answer that is there as a whole; undefined while it is not. */
export function answerOf(bytes: Buffer): Answer | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`An answer without Content-Length: ${head}`);
  if (bytes.length < end + 4 + Number(length)) return undefined;
  return { status: Number(head.slice(9, 12)), body: bytes.subarray(end + 4) };
}
