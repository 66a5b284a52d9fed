import type {
  OpenSession,
  SessionRegistry,
} from '../../../domain/stream-sessions/session-registry.ts';
import {
  OVER_LIMIT_READS,
  WRITE_INTERVAL_MS,
} from '../../../domain/stream-sessions/session-timing.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { Connection } from '../hub/stream-connection.ts';
import type { FatalName } from '../protocol/error-codes.ts';
import { SIGNED_OUT } from './authenticate.ts';

export type SessionSync = ReturnType<typeof openSessionSync>;

/**
 * Opens the sync, which publishes open sockets to their owners and closes the sockets that owners
 * end: a write and a read every `WRITE_INTERVAL_MS`, one after the other, so that a requested close
 * has happened after two of them. Each turn writes all changes since the last one. While PostgreSQL
 * is unreachable the changes wait, bounded by the sockets opened meanwhile.
 */
export function openSessionSync(registry: SessionRegistry, log: Log) {
  const connections = new Map<string, Connection>();
  const changes = createSessionWriter(registry, connections);
  const applyOrders = createOrders(registry, connections);
  let isAway = false;
  let isClosing = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  const turn = async () => {
    // Sockets whose sign-in has ended must close even if a write fails.
    const failures = [await changes.write().catch(asError), await applyOrders().catch(asError)];
    const error = failures.find((failure) => failure instanceof Error);
    if (error !== undefined) {
      // After a failover the next server may lack our last rows, so all are written again.
      for (const session of connections.keys()) changes.opened(session);
      if (!isAway) log.warn({ err: error }, 'sessions cannot be recorded');
    } else if (isAway) log.info('sessions are recorded again');
    isAway = error !== undefined;
    if (!isClosing) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => {
      running = turn();
    }, WRITE_INTERVAL_MS);
  };
  schedule();

  return {
    opened(connection: Connection) {
      connections.set(connection.session, connection);
      changes.opened(connection.session);
    },
    closed({ session }: Connection) {
      connections.delete(session);
      changes.closed(session);
    },
    /** Stops writing, and removes the process from the registry. */
    async close() {
      isClosing = true;
      clearTimeout(timer);
      await running;
      await registry
        .leave()
        .catch((error) => log.warn({ err: error }, 'the process is still in the registry'));
    },
  };
}

/** Collects changes, and writes them to the registry. */
function createSessionWriter(
  registry: SessionRegistry,
  connections: ReadonlyMap<string, Connection>,
) {
  const unwritten = new Set<string>();
  const closed = new Set<string>();
  const lagging = new Set<string>();
  return {
    opened: (session: string) => void unwritten.add(session),
    closed(session: string) {
      lagging.delete(session);
      // A write of its row may be in flight, so an unwritten session is deleted, too.
      unwritten.delete(session);
      closed.add(session);
    },
    async write() {
      const nowMs = performance.now();
      const writing = [...unwritten];
      const gone = [...closed];
      const opened = writing.flatMap((session) => {
        const connection = connections.get(session);
        return connection === undefined ? [] : [rowOf(connection, nowMs)];
      });
      await registry.write({ opened, closed: gone, lags: lagsOf(connections, lagging, nowMs) });
      for (const session of writing) unwritten.delete(session);
      for (const session of gone) closed.delete(session);
    },
  };
}

/** Closes sockets on behalf of their owners, and sockets of accounts over their limit. */
function createOrders(registry: SessionRegistry, connections: ReadonlyMap<string, Connection>) {
  let overLimit = new Map<string, number>();
  const fail = (session: string, code: FatalName, message: string) =>
    connections.get(session)?.fail(code, message);
  return async () => {
    const orders = await registry.read();
    for (const { session, why } of orders.ends) {
      const { code, message } = SIGNED_OUT.refusal;
      if (why === 'signed_out') fail(session, code, message);
      else fail(session, 'taken_over', 'The session was closed over the API.');
    }
    const now = new Map<string, number>();
    for (const { session, before, deskMax } of orders.overLimit) {
      const { connectionsMax = Number.POSITIVE_INFINITY } =
        connections.get(session)?.principal ?? {};
      const max = deskMax ?? connectionsMax;
      if (before < max) continue;
      const reads = (overLimit.get(session) ?? 0) + 1;
      const message = `More than ${max} connections are open across all instances.`;
      if (reads < OVER_LIMIT_READS) now.set(session, reads);
      else fail(session, 'connection_limit', message);
    }
    overLimit = now;
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function rowOf(connection: Connection, nowMs: number): OpenSession {
  const { session, principal, address, encoding, openedAt, outbox, queueBytes } = connection;
  const { accountId, sessionHash, hint, desk } = principal;
  return {
    session,
    accountId,
    deskId: desk?.id,
    sessionHash,
    hint,
    address,
    encoding,
    queueMs: outbox.queueMs(nowMs),
    queueBytes,
    openedAt: new Date(openedAt / 1000),
  };
}

/** Sessions that have a queue now, or had one at the last write. */
function lagsOf(connections: ReadonlyMap<string, Connection>, lagging: Set<string>, nowMs: number) {
  const lags: { session: string; queueMs: number; queueBytes: number }[] = [];
  for (const [session, { outbox, queueBytes }] of connections) {
    const queueMs = outbox.queueMs(nowMs);
    const isLagging = queueMs > 0 || queueBytes > 0;
    if (isLagging || lagging.has(session)) lags.push({ session, queueMs, queueBytes });
    if (isLagging) lagging.add(session);
    else lagging.delete(session);
  }
  return lags;
}
