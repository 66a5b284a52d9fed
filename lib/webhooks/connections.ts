import { Client } from 'undici';
import { AttemptError } from './attempt-error.ts';
import type { Resolver } from './resolve.ts';
import type { UrlPolicy } from './url-policy.ts';
import { vettedConnector } from './vetted-connector.ts';

export interface ConnectionOptions {
  readonly policy: UrlPolicy;
  readonly resolver: Resolver;
  readonly dialTimeoutMs: number;
  /** Of one endpoint. */
  readonly connectionsMax: number;
  readonly ca: string | undefined;
  /** A connection that is older carries no further message: its address is vetted anew. */
  readonly ageMaxMs: number;
}

/** The connections of one endpoint to one origin, shared with no other endpoint. */
export interface Connections {
  readonly origin: string;
  /**
   * Takes a free connection, a new one, or waits for one.
   * @throws AttemptError when the signal fires, too many wait, or they were closed
   */
  take(signal: AbortSignal): Promise<Connection>;
  /** Closes what is free now, and the rest when it is given back; who waits still gets one. */
  retire(): void;
}

/** One HTTP/1.1 connection that its holder alone uses, so that nothing is pipelined. */
export interface Connection {
  readonly client: Client;
  /** @param isReusable false closes it: the attempt failed, or its answer was left half read */
  give(isReusable: boolean): void;
  /** Ends what is under way on it, connecting included. */
  destroy(error: Error): void;
}

/** Sends of one endpoint that wait for a connection; more are refused. */
const WAITING_MAX = 1_000;
/** What servers announce as keep-alive is believed up to here. */
const KEEP_ALIVE_MAX_MS = 60_000;

interface Slot extends Connection {
  connectedAt: number | undefined;
}

/**
 * Opens the connections of one endpoint, none yet. This stands in for undici's Pool, which sends
 * what is queued over connections past their age, and keeps the queued ones past their abort.
 */
export function openConnections(origin: string, options: ConnectionOptions): Connections {
  const free: Slot[] = [];
  const taken = new Set<Slot>();
  const waiting = new Set<(connection: Connection) => void>();
  let isRetired = false;

  const open = (): Slot => {
    const ending = new AbortController();
    const slot: Slot = {
      connectedAt: undefined,
      client: new Client(origin, {
        connect: vettedConnector({
          ...options,
          signal: ending.signal,
          onConnected: () => {
            slot.connectedAt = performance.now();
          },
        }),
        pipelining: 1,
        allowH2: false,
        // The attempt as a whole is bounded instead.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      }),
      give(isReusable) {
        if (!taken.delete(slot)) return;
        if (isReusable) free.push(slot);
        else slot.destroy(new AttemptError('stopped', 'The connection is not used again.'));
        next();
        if (isRetired) closeFree();
      },
      destroy(error) {
        ending.abort();
        void slot.client.destroy(error);
      },
    };
    return slot;
  };
  /** A free connection that is young enough, or a new one; undefined when all are taken. */
  const find = (): Slot | undefined => {
    if (taken.size >= options.connectionsMax) return undefined;
    const tooOld = performance.now() - options.ageMaxMs;
    for (let slot = free.pop(); slot !== undefined; slot = free.pop()) {
      if ((slot.connectedAt ?? 0) > tooOld && !slot.client.destroyed) return slot;
      slot.destroy(new AttemptError('stopped', 'The connection is too old.'));
    }
    return open();
  };
  const hand = (): Slot | undefined => {
    const slot = find();
    if (slot !== undefined) taken.add(slot);
    return slot;
  };
  const next = () => {
    const [first] = waiting;
    const slot = first === undefined ? undefined : hand();
    if (first === undefined || slot === undefined) return;
    waiting.delete(first);
    first(slot);
  };
  const closeFree = () => {
    for (const slot of free.splice(0)) {
      slot.destroy(new AttemptError('stopped', 'The connection is not used any more.'));
    }
  };

  return {
    origin,
    take(signal) {
      const slot = signal.aborted ? undefined : hand();
      if (slot !== undefined) return Promise.resolve(slot);
      return new Promise((resolve, reject) => {
        signal.throwIfAborted();
        if (waiting.size >= WAITING_MAX) {
          const why = `${WAITING_MAX} messages wait for a connection to the endpoint already.`;
          reject(new AttemptError('timeout', `${why} Answer sooner.`));
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
    },
    retire() {
      isRetired = true;
      closeFree();
    },
  };
}
