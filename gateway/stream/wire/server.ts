import * as uWS from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import type { Log } from '../../../lib/log.ts';
import type { ProblemAnswer } from '../../http/problems.ts';
import { CLOSE_CODES } from '../contract/close-codes.ts';
import type { Manner, Socket } from '../live/connection.ts';
import { AVRO_CODEC } from './avro-codec.ts';
import { type Codec, isBinaryFrame } from './codec.ts';
import { notFound, stateAnswer, tooManyOpens, upgradeRequired } from './http-answers.ts';
import { JSON_CODEC } from './json-codec.ts';

/** What a client brought along with its handshake. */
export interface Handshake extends Manner {
  /** X-API-Key; several are joined by a comma, which no key has. */
  readonly key: string;
  /** The query's `ticket`. */
  readonly ticket: string | undefined;
}

/** What the server does with the events of one socket. */
export interface SocketEvents {
  /** Once, before all others. */
  opened(): void;
  /** The bytes are uWS's own and gone after the call. */
  receive(bytes: Buffer, isBinary: boolean): void;
  pinged(): void;
  drained(): void;
  closed(): void;
}

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly limits: {
    readonly frameReadBytesMax: number;
    readonly uwsBufferBytesMax: number;
    readonly silentPeerS: number;
  };
  readonly log: Log;
  /** @returns false when the handshake must be answered with 429. */
  mayOpen(): boolean;
  /** A socket is open; what it sends comes after `opened`. */
  open(socket: Socket, handshake: Handshake): SocketEvents;
  /** Why /ready says no. */
  notReady(): string | undefined;
}

export interface StreamServer {
  readonly port: number;
  /** Takes no new connections; those that are open go on. */
  stopListening(): void;
  /** Ends all there is, at once. */
  close(): void;
}

/** How pills are encoded, by subprotocol; JSON for clients that name none. */
const SUBPROTOCOLS: ReadonlyMap<string, Codec> = new Map([
  ['pills.v1.json', JSON_CODEC],
  ['pills.v1.avro', AVRO_CODEC],
]);

interface Peer {
  readonly handshake: Handshake;
  socket: UwsSocket | undefined;
  events: SocketEvents | undefined;
}

type Ws = uWS.WebSocket<Peer>;

/** A uWS socket that is never touched after its close: uWS throws then. */
class UwsSocket implements Socket {
  readonly address: string;
  readonly #ws: Ws;
  isClosed = false;

  constructor(ws: Ws) {
    this.#ws = ws;
    this.address = Buffer.from(ws.getRemoteAddressAsText()).toString('latin1');
  }

  send(bytes: Uint8Array): number {
    return this.isClosed ? 2 : this.#ws.send(bytes, isBinaryFrame(bytes), false);
  }

  buffered(): number {
    return this.isClosed ? 0 : this.#ws.getBufferedAmount();
  }

  end(code: number, reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true; // before end(): it calls the close handler from inside
    this.#ws.end(code, reason);
  }
}

/**
 * Starts the server: WebSockets at `path`, /health and /ready, and problem documents elsewhere.
 * An exception in a handler ends one connection, never the process.
 * @throws when the address is taken.
 */
export async function startServer(options: ServerOptions): Promise<StreamServer> {
  const { limits, path, log } = options;
  const app = uWS.App();

  const guarded =
    <T, A extends unknown[]>(handle: (on: T, ...args: A) => void, undo: (on: T) => void) =>
    (on: T, ...args: A) => {
      try {
        handle(on, ...args);
      } catch (error) {
        log.error({ err: error }, 'a socket handler failed');
        try {
          undo(on);
        } catch {
          // The socket is gone already.
        }
      }
    };
  const onSocket = <A extends unknown[]>(handle: (ws: Ws, ...args: A) => void) =>
    guarded(handle, (ws) => {
      const { code } = CLOSE_CODES.internal;
      const { socket } = ws.getUserData();
      if (socket === undefined) ws.end(code, 'internal');
      else socket.end(code, 'internal');
    });
  const onHttp = <A extends unknown[]>(handle: (res: uWS.HttpResponse, ...args: A) => void) =>
    guarded(
      (res: uWS.HttpResponse, ...args: A) => {
        res.onAborted(() => undefined); // answered in this turn, but uWS ends the process without
        handle(res, ...args);
      },
      (res) => void res.close(),
    );

  app.ws<Peer>(path, {
    compression: 0, // none: DISABLED is missing in the types, and is 0
    maxPayloadLength: limits.frameReadBytesMax,
    maxBackpressure: limits.uwsBufferBytesMax,
    closeOnBackpressureLimit: false,
    idleTimeout: limits.silentPeerS,
    sendPingsAutomatically: true,
    upgrade: onHttp((res, req: uWS.HttpRequest, context: uWS.us_socket_context_t) => {
      if (!options.mayOpen()) return answer(res, tooManyOpens());
      if (!isHandshake(req)) return answer(res, upgradeRequired());
      const offered = req.getHeader('sec-websocket-protocol').split(/\s*,\s*/);
      const subprotocol = offered.find((name) => SUBPROTOCOLS.has(name)) ?? '';
      const handshake: Handshake = {
        codec: SUBPROTOCOLS.get(subprotocol) ?? JSON_CODEC,
        origin: req.getHeader('origin'),
        key: headerOf(req, 'x-api-key'),
        ticket: req.getQuery('ticket'),
      };
      const peer: Peer = { handshake, socket: undefined, events: undefined };
      res.upgrade(
        peer,
        req.getHeader('sec-websocket-key'),
        subprotocol,
        req.getHeader('sec-websocket-extensions'),
        context,
      );
    }),
    open: onSocket((ws) => {
      const peer = ws.getUserData();
      peer.socket = new UwsSocket(ws);
      peer.events = options.open(peer.socket, peer.handshake);
      peer.events.opened();
    }),
    message: onSocket((ws, message: ArrayBuffer, isBinary: boolean) => {
      ws.getUserData().events?.receive(Buffer.from(message), isBinary);
    }),
    ping: onSocket((ws) => ws.getUserData().events?.pinged()),
    drain: onSocket((ws) => ws.getUserData().events?.drained()),
    close: guarded(
      (ws: Ws) => {
        const { socket, events } = ws.getUserData();
        if (socket !== undefined) socket.isClosed = true;
        events?.closed();
      },
      () => undefined,
    ),
  });
  app.get(
    '/health',
    onHttp((res) => answer(res, { ...stateAnswer(undefined), body: HEALTHY })),
  );
  app.get(
    '/ready',
    onHttp((res) => answer(res, stateAnswer(options.notReady()))),
  );
  app.any(
    '/*',
    onHttp((res, req: uWS.HttpRequest) => {
      answer(res, req.getUrl() === path ? upgradeRequired() : notFound());
    }),
  );

  const listening = await listen(app, options.host, options.port);
  let isListening = true;
  const stopListening = () => {
    if (isListening) uWS.us_listen_socket_close(listening);
    isListening = false;
  };
  return {
    port: uWS.us_socket_local_port(listening as uWS.us_socket),
    stopListening,
    close() {
      stopListening();
      app.close();
    },
  };
}

/**
 * What uWS leaves to its users: it looks at `Sec-WebSocket-Key` alone, and would take a request that
 * a proxy forwards as plain HTTP for a handshake (RFC 6455 section 4.2.1, points 3, 4 and 6).
 */
function isHandshake(req: uWS.HttpRequest): boolean {
  const names = (header: string, token: string) =>
    headerOf(req, header)
      .toLowerCase()
      .split(/\s*,\s*/)
      .includes(token);
  return (
    names('upgrade', 'websocket') &&
    names('connection', 'upgrade') &&
    headerOf(req, 'sec-websocket-version') === '13'
  );
}

/** All headers of the name: uWS's getter takes the first, and a proxy may have meant another. */
function headerOf(req: uWS.HttpRequest, wanted: string): string {
  const values: string[] = [];
  req.forEach((name, value) => {
    if (name === wanted) values.push(value);
  });
  return values.join(', ');
}

const HEALTHY = '{"status":"ok"}';

function answer(res: uWS.HttpResponse, { status, headers, body }: ProblemAnswer): void {
  res.writeStatus(`${status} ${STATUS_CODES[status] ?? ''}`);
  for (const [name, value] of Object.entries(headers)) res.writeHeader(name, value);
  res.end(body);
}

/** The types lack the form with host and options; by default uWS shares a taken port in silence. */
type Listen = (
  host: string,
  port: number,
  options: number,
  done: (listening: uWS.us_listen_socket | false) => void,
) => void;

function listen(app: uWS.TemplatedApp, host: string, port: number) {
  const bound = app.listen.bind(app) as unknown as Listen;
  // Value of the enum in the types, which does not exist at run time.
  const exclusive = (uWS as unknown as { LIBUS_LISTEN_EXCLUSIVE_PORT: number })
    .LIBUS_LISTEN_EXCLUSIVE_PORT;
  return new Promise<uWS.us_listen_socket>((resolve, reject) => {
    bound(host, port, exclusive, (listening) => {
      if (listening === false)
        reject(new Error(`${host}:${port} cannot be listened on: is it taken?`));
      else resolve(listening);
    });
  });
}
