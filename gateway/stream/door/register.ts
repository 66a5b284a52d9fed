import type { Log } from '../../../lib/log.ts';
import { CROWDED_LOOKS, WRITE_EVERY_MS } from '../../../lib/stream-sessions/pace.ts';
import type { OpenSession, SessionRegistry } from '../../../lib/stream-sessions/registry.ts';
import type { FatalName } from '../contract/error-codes.ts';
import type { Connection } from '../live/connection.ts';
import { SIGNED_OUT } from './member.ts';

/** Writes open sockets down where their owners can see them, and does what these ask for. */
export interface Register {
  opened(connection: Connection): void;
  closed(connection: Connection): void;
  /** Writes no more, and takes the process off the list. */
  close(): Promise<void>;
}

/**
 * Opens the register: a write and a look each `WRITE_EVERY_MS`, one after another, so that a close
 * that was asked for has happened after two of them. Each writes all that changed since the last.
 * While PostgreSQL is away nothing is lost: what changed waits, bounded by the sockets opened
 * meanwhile.
 */
export function openRegister(registry: SessionRegistry, log: Log): Register {
  const connections = new Map<string, Connection>();
  const unwritten = new Set<string>();
  const closed = new Set<string>();
  const lagging = new Map<string, number>();
  const crowded = new Map<string, number>();
  let isAway = false;
  let isClosing = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  const fail = (session: string, code: FatalName, message: string) =>
    connections.get(session)?.fail(code, message);
  const write = async () => {
    const nowMs = performance.now();
    const leaving = [...unwritten];
    const gone = [...closed];
    const opened = leaving.flatMap((session) => rowOf(connections.get(session), nowMs));
    await registry.write({ opened, closed: gone, lags: lagsOf(connections, lagging, nowMs) });
    for (const session of leaving) unwritten.delete(session);
    for (const session of gone) closed.delete(session);
  };
  const obey = async () => {
    const orders = await registry.read();
    for (const { session, why } of orders.ends) {
      if (why === 'signed_out') fail(session, SIGNED_OUT.code, SIGNED_OUT.message);
      else fail(session, 'taken_over', 'The session was closed over the API.');
    }
    const now = new Map<string, number>();
    for (const { session, before } of orders.crowded) {
      const max = connections.get(session)?.member.connectionsMax ?? Number.POSITIVE_INFINITY;
      if (before < max) continue;
      const looks = (crowded.get(session) ?? 0) + 1;
      if (looks < CROWDED_LOOKS) now.set(session, looks);
      else fail(session, 'connection_limit', `More than ${max} are open over all instances.`);
    }
    crowded.clear();
    for (const [session, looks] of now) crowded.set(session, looks);
  };
  const turn = async () => {
    // Those whose sign-in has ended must go, also when something cannot be written.
    const failures = [await write().catch(asError), await obey().catch(asError)];
    const error = failures.find((failure) => failure instanceof Error);
    if (error !== undefined) {
      // Another server may answer next, without our last rows: all are written anew.
      for (const session of connections.keys()) unwritten.add(session);
      if (!isAway) log.warn({ err: error }, 'sessions cannot be written down');
    } else if (isAway) log.info('sessions are written down again');
    isAway = error !== undefined;
    if (!isClosing) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => {
      running = turn();
    }, WRITE_EVERY_MS);
  };
  schedule();

  return {
    opened(connection) {
      connections.set(connection.session, connection);
      unwritten.add(connection.session);
    },
    closed({ session }) {
      connections.delete(session);
      lagging.delete(session);
      // One that was never written may be on its way right now: it is struck off all the same.
      unwritten.delete(session);
      closed.add(session);
    },
    async close() {
      isClosing = true;
      clearTimeout(timer);
      await running;
      await registry.leave().catch((error) => log.warn({ err: error }, 'still on the list'));
    },
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function rowOf(connection: Connection | undefined, nowMs: number): OpenSession[] {
  if (connection === undefined) return [];
  const { session, member, address, encoding, openedAt, outbox, queueBytes } = connection;
  const { accountId, sessionHash, hint } = member;
  const queueMs = outbox.queueMs(nowMs);
  const since = new Date(openedAt / 1000);
  return [
    {
      ...{ session, accountId, sessionHash, hint, address, encoding, queueMs, queueBytes },
      openedAt: since,
    },
  ];
}

/** Those that wait for something, or did when it was last written. */
function lagsOf(
  connections: ReadonlyMap<string, Connection>,
  lagging: Map<string, number>,
  nowMs: number,
) {
  const lags: { session: string; queueMs: number; queueBytes: number }[] = [];
  for (const [session, { outbox, queueBytes }] of connections) {
    const queueMs = outbox.queueMs(nowMs);
    if (queueMs === 0 && queueBytes === 0 && !lagging.has(session)) continue;
    if (queueMs === 0 && queueBytes === 0) lagging.delete(session);
    else lagging.set(session, queueMs);
    lags.push({ session, queueMs, queueBytes });
  }
  return lags;
}
