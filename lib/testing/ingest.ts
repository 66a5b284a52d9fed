import net from 'node:net';
import getPort from 'get-port';
import { topicName } from '../../schemas/topics.ts';
import { fetchOffsetBounds } from '../kafka/topics.ts';
import type { Namespace } from './namespace.ts';
import { startProcess, type TestProcess } from './process.ts';

/** A real ingest process over a namespace of a test's own. */
export interface TestIngest {
  readonly process: TestProcess;
  readonly port: number;
  readonly url: string;
}

export async function startIngest(
  namespace: Namespace,
  env: Readonly<Record<string, string>> = {},
): Promise<TestIngest> {
  const port = await getPort();
  const process = await startProcess('gateway/ingest/main.js', [], {
    ...namespace.env,
    INGEST_PORT: String(port),
    ...env,
  });
  return { process, port, url: `http://127.0.0.1:${port}` };
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An answer's JSON, as far as a test asks for it. */
export function jsonOf(answer: { readonly body: string }): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}

/** Sends bytes over a connection of its own and reads answers, as no HTTP client would. */
export interface RawConnection {
  write(bytes: string | Buffer): void;
  /** The next answer. @throws when the connection ends before it. */
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

/** Sends bytes on a fresh connection, and gives the one answer. */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const connection = await openRaw(port);
  try {
    connection.write(bytes);
    return await connection.answer();
  } finally {
    connection.destroy();
  }
}

/** Bytes of a POST; `lines` replace the Content-Type header. */
export function postBytes(
  body: string | Buffer,
  lines: readonly string[] = ['Content-Type: application/json'],
  path = '/api/pillole',
): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Length: ${bytes.length}`,
    ...lines,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
}

/** How many records the pills topic has had so far. */
export async function countPillsInLog({ client, name }: Namespace): Promise<number> {
  const bounds = await fetchOffsetBounds(client, topicName(name, 'pills'));
  return [...bounds.values()].reduce((sum, { high }) => sum + high, 0);
}
