import { Client } from 'undici';
import { AttemptError } from './attempt-error.ts';
import type { Egress } from './egress.ts';
import { vettedConnector } from './vetted-connector.ts';

export interface ConnectionOptions extends Egress {
  readonly dialTimeoutMs: number;
  /** For one endpoint. */
  readonly connectionsMax: number;
  readonly ca: string | undefined;
  /** An older connection carries no further message, so that its address is vetted again. */
  readonly ageMaxMs: number;
}

export type Connections = ReturnType<typeof openConnections>;
type Connection = ReturnType<typeof openConnection>;

/** Messages of one endpoint that may wait for a connection; more are refused. */
const WAITING_MAX = 1_000;
/** Upper bound of the keep-alive time that a server announces. */
const KEEP_ALIVE_MAX_MS = 60_000;

/**
 * Opens the connections of one endpoint to one origin, initially none, shared with no other endpoint.
 * They replace undici's Pool, which sends queued requests over connections past their age, and keeps
 * queued requests past their abort.
 */
export function openConnections(origin: string, options: ConnectionOptions) {
  const free: Connection[] = [];
  const taken = new Set<Connection>();
  const waiting = new Set<(connection: Connection) => void>();
  let isRetired = false;

  /** @param isReusable false closes it: the attempt failed, or its answer was read only in part */
  const release = (connection: Connection, isReusable: boolean) => {
    if (!taken.delete(connection)) return;
    if (isReusable) free.push(connection);
    else connection.destroy(stopped('The connection is not used again.'));
    handToNext();
    if (isRetired) closeFree();
  };
  /** A free connection that is young enough, or a new one; undefined when all are taken. */
  const take = (): Connection | undefined => {
    if (taken.size >= options.connectionsMax) return undefined;
    const connection = popUsable(free) ?? openConnection(origin, options);
    taken.add(connection);
    return connection;
  };
  const handToNext = () => {
    const [first] = waiting;
    const connection = first === undefined ? undefined : take();
    if (first === undefined || connection === undefined) return;
    waiting.delete(first);
    first(connection);
  };
  const closeFree = () => {
    for (const connection of free.splice(0))
      connection.destroy(stopped('The connection is no longer used.'));
  };
  const waitForConnection = (signal: AbortSignal) =>
    new Promise<Connection>((resolve, reject) => {
      signal.throwIfAborted();
      if (waiting.size >= WAITING_MAX) {
        const why = `${WAITING_MAX} messages wait for a connection to the endpoint already.`;
        reject(new AttemptError('timeout', `${why} Answer faster.`));
        return;
      }
      const give = (connection: Connection) => {
        signal.removeEventListener('abort', leave);
        resolve(connection);
      };
      const leave = () => {
        waiting.delete(give);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      waiting.add(give);
    });

  return {
    origin,
    /**
     * Takes a free or new connection, or waits for one.
     * @throws AttemptError when the signal fires, too many callers wait, or the sender is closed
     */
    async acquire(signal: AbortSignal): Promise<Connection> {
      const connection = signal.aborted ? undefined : take();
      return connection ?? waitForConnection(signal);
    },
    release,
    /** Closes free connections now, the others when released; waiting callers still get one. */
    retire(): void {
      isRetired = true;
      closeFree();
    },
  };
}

/** Takes the newest usable connection; connections that are too old are closed. */
function popUsable(free: Connection[]): Connection | undefined {
  for (let connection = free.pop(); connection !== undefined; connection = free.pop()) {
    if (connection.isUsable()) return connection;
    connection.destroy(stopped('The connection is too old.'));
  }
  return undefined;
}

/** One HTTP/1.1 connection, opened by its first request; only its holder uses it: no pipelining. */
function openConnection(origin: string, options: ConnectionOptions) {
  const ending = new AbortController();
  let connectedAt = 0;
  const onConnected = () => {
    connectedAt = performance.now();
  };
  const client = new Client(origin, {
    connect: vettedConnector({ ...options, signal: ending.signal, onConnected }),
    pipelining: 1,
    allowH2: false,
    // The sender bounds the attempt as a whole instead.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
  });
  return {
    client,
    isUsable: () => !client.destroyed && connectedAt > performance.now() - options.ageMaxMs,
    /** Ends the request in flight, connecting included. */
    destroy(error: Error): void {
      ending.abort();
      void client.destroy(error);
    },
  };
}

function stopped(message: string): AttemptError {
  return new AttemptError('stopped', message);
}
