import net from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A raw connection, which can send bytes that no HTTP client sends. */
export interface RawConnection {
  write(bytes: string | Buffer): void;
  /** The next answer. @throws Error when the connection ends first */
  answer(): Promise<RawAnswer>;
  /** Resolves when the server has closed its side. */
  readonly ended: Promise<void>;
  destroy(): void;
}

export async function openRaw(port: number): Promise<RawConnection> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let buffer: Buffer = Buffer.alloc(0);
  let isEnded = false;
  let wake: () => void = () => undefined;
  socket.on('data', (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    wake();
  });
  const ended = new Promise<void>((resolve) => {
    const end = () => {
      isEnded = true;
      wake();
      resolve();
    };
    socket.on('end', end);
    socket.on('close', end);
    socket.on('error', end);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return {
    write: (bytes) => void socket.write(bytes),
    async answer() {
      for (;;) {
        const taken = takeAnswer(buffer);
        if (taken !== undefined) {
          buffer = taken.rest;
          return taken.answer;
        }
        if (isEnded) throw new Error(`Ended after: ${buffer.toString('latin1')}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    ended,
    destroy: () => void socket.destroy(),
  };
}

function takeAnswer(buffer: Buffer): { answer: RawAnswer; rest: Buffer } | undefined {
  const end = buffer.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = buffer.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  if (status === 100) return takeAnswer(buffer.subarray(end + 4));
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = Number(headers['content-length'] ?? 0);
  if (buffer.length < end + 4 + length) return undefined;
  const body = buffer.subarray(end + 4, end + 4 + length).toString('utf8');
  return { answer: { status, headers, body }, rest: buffer.subarray(end + 4 + length) };
}

/** Sends bytes on a new connection. @returns the first answer */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const connection = await openRaw(port);
  try {
    connection.write(bytes);
    return await connection.answer();
  } finally {
    connection.destroy();
  }
}
