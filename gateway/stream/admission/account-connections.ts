import pLimit from 'p-limit';
import type { Keyring } from '../../../domain/access/keyring.ts';
import type { Log } from '../../../lib/log/log.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Principal } from '../hub/principal.ts';
import { type Connection, INTERNAL_ERROR } from '../hub/stream-connection.ts';
import { type Authentication, reauthenticate, UNAVAILABLE } from './authenticate.ts';
import type { Refusal } from './connection-limiter.ts';

/** Sessions that a refusal lists: a longer list would make the frame too large. */
const LISTED_MAX = 50;
const CHECKS_AT_ONCE_MAX = 50;

export type AccountConnections = ReturnType<typeof createAccountConnections>;

/**
 * Creates the list of open connections by account. Every change of an account's access checks each
 * of its connections again. If PostgreSQL is unreachable the sweep repeats the check, until the
 * keyring counts as stale.
 */
export function createAccountConnections(keyring: Keyring, nowMs: () => number, log: Log) {
  const byAccount = new Map<string, Set<Connection>>();
  /** Connections whose access is not confirmed. */
  const unconfirmed = new Set<Connection>();
  const all = () => [...byAccount.values()].flatMap((own) => [...own]);

  const settle = (connection: Connection, result: Authentication) => {
    if (!byAccount.get(connection.principal.accountId)?.has(connection)) return;
    if (result.ok) {
      unconfirmed.delete(connection);
      connection.reauthorize(result.principal);
      // It has ended if it may no longer have what it gets.
      const own = byAccount.get(result.principal.accountId);
      if (own?.has(connection) === true && !isAmongFirst(connection, own)) {
        const { message, more } = overLimit(result.principal, byAccount)!;
        connection.fail('connection_limit', message, more);
      }
      return;
    }
    const { code, message, more } = result.refusal;
    // The sweep checks again; a concurrent check may have removed it from the set.
    if (code === 'accounts_unavailable' && !keyring.isStale()) unconfirmed.add(connection);
    else connection.fail(code, message, more);
  };
  const checks = createChecks(async (connection) => {
    const { principal, address } = connection;
    try {
      settle(connection, await reauthenticate(keyring, principal, address));
    } catch (error) {
      log.error({ err: error }, 'the access of a connection could not be checked');
      connection.fail('internal', INTERNAL_ERROR);
    }
  });
  const check = (connections: Iterable<Connection>) => {
    for (const connection of connections) unconfirmed.add(connection);
    checks.add(connections);
  };
  const unsubscribe = keyring.onChange((accountId) =>
    check(accountId === undefined ? all() : [...(byAccount.get(accountId) ?? [])]),
  );

  return {
    /** @returns why the account may not open another connection */
    refusalOf: (principal: Principal) => overLimit(principal, byAccount),
    add(connection: Connection) {
      const { accountId } = connection.principal;
      const own = byAccount.get(accountId) ?? new Set();
      byAccount.set(accountId, own.add(connection));
    },
    remove(connection: Connection) {
      const { accountId } = connection.principal;
      const own = byAccount.get(accountId);
      own?.delete(connection);
      if (own?.size === 0) byAccount.delete(accountId);
      unconfirmed.delete(connection);
    },
    /** Checks connections whose access has expired, or whose last check had no answer. */
    sweep() {
      const now = nowMs();
      if (keyring.isStale()) {
        const { code, message, more } = UNAVAILABLE.refusal;
        for (const connection of all()) connection.fail(code, message, more);
        return;
      }
      const expired = all().filter((one) => now >= one.principal.endsAtMs);
      if (!checks.isBusy()) check(new Set([...expired, ...unconfirmed]));
    },
    close: unsubscribe,
  };
}

/** Runs a check for each connection, a bounded number at a time. */
function createChecks(check: (connection: Connection) => Promise<void>) {
  const waiting = new Set<Connection>();
  const limit = pLimit(CHECKS_AT_ONCE_MAX);
  const start = (connection: Connection) => {
    waiting.delete(connection);
    return check(connection);
  };
  return {
    isBusy: () => waiting.size > 0,
    add(connections: Iterable<Connection>) {
      for (const connection of connections) {
        if (waiting.has(connection)) continue;
        waiting.add(connection);
        void limit(start, connection);
      }
    },
  };
}

/** Why the account may not open another connection; undefined if it may. */
function overLimit(
  principal: Principal,
  byAccount: ReadonlyMap<string, ReadonlySet<Connection>>,
): Refusal | undefined {
  const own = byAccount.get(principal.accountId);
  if (own === undefined) return undefined;
  const { connectionsMax, desk } = principal;
  const ofDesk = openOfDesk(principal, own);
  if (ofDesk.length >= (desk?.connectionsMax ?? Number.POSITIVE_INFINITY)) {
    return limitRefusal(ofDesk, desk?.connectionsMax ?? 0, ` of the desk ${desk?.name}`);
  }
  return own.size < connectionsMax ? undefined : limitRefusal([...own], connectionsMax);
}

function limitRefusal(open: readonly Connection[], max: number, of = ''): Refusal {
  return {
    code: 'connection_limit',
    message: `${open.length} of ${max} connections${of} are open. Close one first.`,
    more: { limit: max, sessions: open.slice(0, LISTED_MAX).map(sessionOf) },
  };
}

/** After a downgrade the oldest connections stay, and likewise of a desk. */
function isAmongFirst(connection: Connection, own: ReadonlySet<Connection>): boolean {
  const { connectionsMax, desk } = connection.principal;
  const ofDesk = openOfDesk(connection.principal, own);
  if (ofDesk.indexOf(connection) >= (desk?.connectionsMax ?? ofDesk.length)) return false;
  return own.size <= connectionsMax || [...own].indexOf(connection) < connectionsMax;
}

/** The open connections of a desk that has a limit of its own, oldest first; otherwise none. */
function openOfDesk({ desk }: Principal, own: ReadonlySet<Connection>): readonly Connection[] {
  if (desk?.connectionsMax === undefined) return [];
  return [...own].filter(({ principal }) => principal.desk?.id === desk.id);
}

function sessionOf(connection: Connection) {
  const { session, openedAt, address, principal, outbox } = connection;
  return {
    session,
    since: formatTimestamp(openedAt),
    address,
    key: principal.hint,
    queue_ms: outbox.queueMs(performance.now()),
  };
}
