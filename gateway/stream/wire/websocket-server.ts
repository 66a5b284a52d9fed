import * as uWS from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import type { Log } from '../../../lib/log/log.ts';
import type { ClientAddress } from '../../http/client-address.ts';
import { type ClientProof, publicTarget, readClientProof } from '../../http/client-proof.ts';
import { problemList, problemPage } from '../../http/problem-pages.ts';
import { type ProblemAnswer, problemAnswer } from '../../http/problems.ts';
import type { Limits } from '../limits.ts';
import { CLOSE_CODES } from '../protocol/close-codes.ts';
import { AVRO_CODEC } from './avro-codec.ts';
import { type Codec, isBinaryFrame } from './codec.ts';
import { JSON_CODEC } from './json-codec.ts';
import type { Wire } from './outbox.ts';

/** The part of a WebSocket that a connection needs. */
export interface Socket extends Wire {
  readonly address: string;
  /** Sends a close frame and ends the socket. */
  end(code: number, reason: string): void;
}

/** The client's choices and credentials in its handshake. */
export interface Handshake {
  /** Of the client, behind trusted proxies too. */
  readonly address: string;
  /** Origin of the browser page; empty for programs. */
  readonly origin: string;
  readonly codec: Codec;
  /** X-API-Key; repeated headers are joined by a comma, which no key contains. */
  readonly key: string;
  /** A signature or token in place of a key. */
  readonly proof: ClientProof | undefined;
  /** `ticket` of the query. */
  readonly ticket: string | undefined;
  /** At one of `otherPaths`. */
  readonly isElsewhere: boolean;
}

/** Handles the events of one socket. */
export interface SocketEvents {
  /** Called once, before all others. */
  opened(): void;
  /** The bytes belong to uWS and are invalid after the call. */
  receive(bytes: Buffer, isBinary: boolean): void;
  pinged(): void;
  drained(): void;
  closed(): void;
}

interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Where sockets are accepted only to be refused with a reason; may end with `*`. */
  readonly otherPaths: readonly string[];
  readonly limits: Pick<Limits, 'frameReadBytesMax' | 'uwsBufferBytesMax' | 'silentPeerS'>;
  readonly log: Log;
  readonly clientAddress: ClientAddress;
  /** Public address of the server, which signatures cover. */
  readonly publicUrl: string;
  /** @returns false when the handshake must be answered with 429. */
  mayOpen(handshake: Handshake): boolean;
  /** A socket is open; its frames arrive after `opened`. */
  open(socket: Socket, handshake: Handshake): SocketEvents;
  /** Why the process is not ready; undefined if it is. */
  notReady(): string | undefined;
}

export type StreamServer = Awaited<ReturnType<typeof startServer>>;

/** The codec by subprotocol; JSON for clients that name none. */
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

/** A uWS socket that is not used after its close, because uWS would then throw. */
class UwsSocket implements Socket {
  readonly address: string;
  readonly #ws: Ws;
  isClosed = false;

  constructor(ws: Ws) {
    this.#ws = ws;
    this.address = ws.getUserData().handshake.address;
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
 * Starts the server: WebSockets at `path` and `otherPaths`, /health and /ready, and problem documents elsewhere.
 * An exception in a handler ends one connection, never the process.
 * @throws when the address is taken.
 */
export async function startServer(options: ServerOptions) {
  const app = uWS.App();
  const guards = createGuards(options.log);
  addWebSocket(app, options, guards);
  addHttp(app, options, guards);
  const listening = await listen(app, options.host, options.port);
  let isListening = true;
  const stopListening = () => {
    if (isListening) uWS.us_listen_socket_close(listening);
    isListening = false;
  };
  return {
    port: uWS.us_socket_local_port(listening as uWS.us_socket),
    /** Accepts no new connections; open ones stay open. */
    stopListening,
    /** Ends all connections at once. */
    close() {
      stopListening();
      app.close();
    },
  };
}

type Guards = ReturnType<typeof createGuards>;

/** Wrappers that turn an exception of a handler into the end of its connection. */
function createGuards(log: Log) {
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
  return {
    guarded,
    onSocket: <A extends unknown[]>(handle: (ws: Ws, ...args: A) => void) =>
      guarded(handle, (ws) => {
        const { code } = CLOSE_CODES.internal;
        (ws.getUserData().socket ?? ws).end(code, 'internal');
      }),
    onHttp: <A extends unknown[]>(handle: (res: uWS.HttpResponse, ...args: A) => void) =>
      guarded(
        (res: uWS.HttpResponse, ...args: A) => {
          res.onAborted(() => undefined); // uWS ends the process without a handler
          handle(res, ...args);
        },
        (res) => void res.close(),
      ),
  };
}

function addWebSocket(
  app: uWS.TemplatedApp,
  { limits, path, otherPaths, open, mayOpen, clientAddress, publicUrl }: ServerOptions,
  { guarded, onSocket, onHttp }: Guards,
): void {
  const behavior: uWS.WebSocketBehavior<Peer> = {
    compression: 0, // none: DISABLED is missing in the types, and is 0
    maxPayloadLength: limits.frameReadBytesMax,
    maxBackpressure: limits.uwsBufferBytesMax,
    closeOnBackpressureLimit: false,
    idleTimeout: limits.silentPeerS,
    sendPingsAutomatically: true,
    upgrade: onHttp((res, req: uWS.HttpRequest, context: uWS.us_socket_context_t) => {
      const offered = listOf(req.getHeader('sec-websocket-protocol'));
      const subprotocol = offered.find((name) => SUBPROTOCOLS.has(name)) ?? '';
      const handshake: Handshake = {
        address: addressOf(res, req, clientAddress),
        codec: SUBPROTOCOLS.get(subprotocol) ?? JSON_CODEC,
        origin: headerOf(req, 'origin'),
        key: headerOf(req, 'x-api-key'),
        proof: proofOf(req, publicUrl),
        ticket: req.getQuery('ticket'),
        isElsewhere: req.getUrl() !== path,
      };
      if (!mayOpen(handshake)) {
        return answer(res, problemAnswer('connection_flood', { retry_after_s: 1 }));
      }
      if (!isHandshake(req)) {
        return answer(res, handshake.isElsewhere ? problemAnswer('not_found') : upgradeRequired());
      }
      res.upgrade<Peer>(
        { handshake, socket: undefined, events: undefined },
        req.getHeader('sec-websocket-key'),
        subprotocol,
        req.getHeader('sec-websocket-extensions'),
        context,
      );
    }),
    open: onSocket((ws) => {
      const peer = ws.getUserData();
      peer.socket = new UwsSocket(ws);
      peer.events = open(peer.socket, peer.handshake);
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
  };
  for (const one of [path, ...otherPaths]) app.ws<Peer>(one, behavior);
}

function addHttp(
  app: uWS.TemplatedApp,
  { path, notReady }: ServerOptions,
  { onHttp }: Guards,
): void {
  const health = onHttp((res) => answer(res, stateAnswer('ok')));
  const ready = onHttp((res) => {
    const reason = notReady();
    answer(res, reason === undefined ? stateAnswer('ready') : stateAnswer('not_ready', reason));
  });
  const any = onHttp((res, req: uWS.HttpRequest) => {
    answer(res, req.getUrl() === path ? upgradeRequired() : problemAnswer('not_found'));
  });
  app.get('/health', health).get('/ready', ready);
  // The pages that `type` of the problems above refers to.
  const problems = onHttp((res) => answer(res, pageAnswer(problemList())));
  const problem = onHttp((res, req: uWS.HttpRequest) => {
    const page = problemPage(req.getParameter(0) ?? '');
    answer(res, page === undefined ? problemAnswer('not_found') : pageAnswer(page));
  });
  app.get('/problems', problems).get('/problems/:name', problem).any('/*', any);
}

/** An answer of the few plain requests. */
type PlainAnswer = Omit<ProblemAnswer, 'requestId'>;

function pageAnswer(page: object): PlainAnswer {
  const headers = { 'content-type': 'application/json', 'cache-control': 'public, max-age=300' };
  return { status: 200, headers, body: JSON.stringify(page) };
}

function stateAnswer(status: 'ok' | 'ready' | 'not_ready', reason?: string): PlainAnswer {
  return {
    status: reason === undefined ? 200 : 503,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify({ status, reason }),
  };
}

/**
 * The path of the stream without a handshake, or with a handshake of another version (RFC 9110
 * section 15.5.22, RFC 6455 section 4.4).
 */
function upgradeRequired(): PlainAnswer {
  const headers = { upgrade: 'websocket', 'sec-websocket-version': '13' };
  return problemAnswer('upgrade_required', {}, headers);
}

/**
 * Checks what uWS leaves to its users: uWS looks only at `Sec-WebSocket-Key`, and would accept a
 * request that a proxy forwards as plain HTTP (RFC 6455 section 4.2.1, points 3, 4 and 6).
 */
function isHandshake(req: uWS.HttpRequest): boolean {
  const names = (header: string, token: string) =>
    listOf(headerOf(req, header).toLowerCase()).includes(token);
  return (
    names('upgrade', 'websocket') &&
    names('connection', 'upgrade') &&
    headerOf(req, 'sec-websocket-version') === '13'
  );
}

/** The signature or token of a handshake. It covers the address with which the client connects. */
function proofOf(req: uWS.HttpRequest, publicUrl: string): ClientProof | undefined {
  const mayBe = ['authorization', 'signature', 'signature-input'].some((name) =>
    req.getHeader(name),
  );
  if (!mayBe) return undefined;
  const headers: [string, string][] = [];
  req.forEach((name, value) => void headers.push([name, value]));
  const query = req.getQuery();
  const target = req.getUrl() + (query ? `?${query}` : '');
  const url = publicTarget(publicUrl, target);
  return readClientProof({ method: 'GET', url, headers, hasBody: false });
}

/** The address of the client; uWS reads a PROXY header (version 2) in front of any request. */
function addressOf(res: uWS.HttpResponse, req: uWS.HttpRequest, clientAddress: ClientAddress) {
  const text = (bytes: ArrayBuffer) => Buffer.from(bytes).toString('latin1');
  return clientAddress(
    text(res.getRemoteAddressAsText()),
    headerOf(req, 'x-forwarded-for'),
    text(res.getProxiedRemoteAddressAsText()),
  );
}

/** The members of a header. A pattern with spaces around the comma would take quadratic time. */
function listOf(header: string): string[] {
  return header.split(',').map((member) => member.trim());
}

/** All headers of the name: uWS returns only the first, and a proxy may use another. */
function headerOf(req: uWS.HttpRequest, wanted: string): string {
  const values: string[] = [];
  req.forEach((name, value) => {
    if (name === wanted) values.push(value);
  });
  return values.join(', ');
}

/**
 * Answers, and closes the connection: a PROXY header in front of a second request would come from the
 * client, not from the proxy that opened the connection. For the same reason the answer waits for a
 * turn: uWS cuts a connection that sends a second request before the answer to the first.
 */
function answer(res: uWS.HttpResponse, { status, headers, body }: PlainAnswer): void {
  let isGone = false;
  res.onAborted(() => {
    isGone = true;
  });
  setImmediate(() => {
    if (isGone) return;
    res.cork(() => {
      res.writeStatus(`${status} ${STATUS_CODES[status] ?? ''}`);
      for (const [name, value] of Object.entries(headers)) res.writeHeader(name, value);
      res.end(body, true);
    });
  });
}

function listen(app: uWS.TemplatedApp, host: string, port: number) {
  // The types lack the form with host and options; by default uWS silently shares a taken port.
  const bound = app.listen.bind(app) as unknown as (
    host: string,
    port: number,
    options: number,
    done: (listening: uWS.us_listen_socket | false) => void,
  ) => void;
  // The enum of the types does not exist at run time; its value does.
  const { LIBUS_LISTEN_EXCLUSIVE_PORT: exclusive } = uWS as unknown as Record<string, number>;
  return new Promise<uWS.us_listen_socket>((resolve, reject) => {
    bound(host, port, exclusive!, (listening) => {
      if (listening !== false) resolve(listening);
      else reject(new Error(`Cannot listen on ${host}:${port}: is the address taken?`));
    });
  });
}
