import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** A frame of the client, with the members that tests check. */
export interface ClientFrame {
  readonly op: string;
  readonly id: string;
  readonly key?: string;
  readonly symbols?: readonly string[];
  readonly resume?: unknown;
}

/** A connection on which the test sends the frames of the server. */
export interface ScriptedConnection {
  readonly url: string;
  /** Of the handshake. */
  readonly headers: IncomingMessage['headers'];
  /** The next client frame of an op. */
  next(op: string): Promise<ClientFrame>;
  send(...frames: readonly object[]): void;
  close(code: number): void;
  /** Breaks the socket without a closing handshake: the client sees 1006. */
  cut(): void;
  readonly isOpen: boolean;
  /** Bytes that the client has not read yet. */
  buffered(): number;
}

/** A real WebSocket and HTTP server on a free port; the test decides what it answers. */
export interface ScriptedServer {
  readonly httpUrl: string;
  readonly streamUrl: string;
  /** The next connection, each one once. */
  connection(): Promise<ScriptedConnection>;
  readonly connections: number;
  /** Sets the handler of later HTTP requests. */
  answer(handle: (url: URL, request: IncomingMessage) => HttpAnswer | Promise<HttpAnswer>): void;
  /** Paths of the requests so far, with their queries. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

export interface HttpAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export const NOT_FOUND: HttpAnswer = {
  status: 404,
  body: { type: '/problems/not-found', title: 'No such address', status: 404, code: 'not_found' },
};

export async function openScriptedServer(): Promise<ScriptedServer> {
  const requests: string[] = [];
  let handle: Parameters<ScriptedServer['answer']>[0] = () => NOT_FOUND;
  const http = createServer(async (request, response) => {
    requests.push(request.url!);
    const answer = await handle(new URL(request.url!, 'http://localhost'), request);
    response.writeHead(answer.status ?? 200, answer.headers);
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
  });
  const server = new WebSocketServer({ server: http });
  const connections: ScriptedConnection[] = [];
  const waiting = createQueue<ScriptedConnection>();
  server.on('connection', (socket, request) => {
    const connection = scriptConnection(socket, request);
    connections.push(connection);
    waiting.push(connection);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    httpUrl: `http://127.0.0.1:${port}`,
    streamUrl: `ws://127.0.0.1:${port}`,
    connection: () => waiting.next('a connection'),
    get connections() {
      return connections.length;
    },
    answer(handler) {
      handle = handler;
    },
    requests,
    close: () => close(http, server),
  };
}

function scriptConnection(socket: WebSocket, request: IncomingMessage): ScriptedConnection {
  const queues = new Map<string, Queue<ClientFrame>>();
  const queueOf = (op: string) => {
    const queue = queues.get(op) ?? createQueue<ClientFrame>();
    queues.set(op, queue);
    return queue;
  };
  socket.on('message', (data) => {
    const frame: ClientFrame = JSON.parse(String(data));
    queueOf(frame.op).push(frame);
  });
  socket.on('error', () => undefined);
  return {
    url: request.url!,
    headers: request.headers,
    next: (op) => queueOf(op).next(op),
    send(...frames) {
      for (const frame of frames) socket.send(JSON.stringify(frame));
    },
    close: (code) => socket.close(code),
    cut: () => socket.terminate(),
    get isOpen() {
      return socket.readyState === socket.OPEN;
    },
    buffered: () => socket.bufferedAmount,
  };
}

interface Queue<T> {
  push(value: T): void;
  next(what: string): Promise<T>;
}

function createQueue<T>(): Queue<T> {
  const values: T[] = [];
  const waiting: ((value: T) => void)[] = [];
  return {
    push(value) {
      const resolve = waiting.shift();
      if (resolve === undefined) values.push(value);
      else resolve(value);
    },
    next(what) {
      const value = values.shift();
      if (value !== undefined) return Promise.resolve(value);
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`Waited 60 s for ${what}.`)), 60_000);
        waiting.push((late) => {
          clearTimeout(timer);
          resolve(late);
        });
      });
    },
  };
}

async function close(http: Server, server: WebSocketServer): Promise<void> {
  for (const socket of server.clients) socket.terminate();
  server.close();
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
}
