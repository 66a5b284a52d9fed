import type { Keyring } from '../../../lib/access/access.ts';
import type { Log } from '../../../lib/log.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import type { Connection } from '../live/connection.ts';
import type { Refusal } from './admission.ts';
import { type Admitted, confirm, type Member, UNAVAILABLE } from './member.ts';

/** Sessions that a refusal lists; more would not fit a frame that anyone reads. */
const LISTED_MAX = 50;
/** Accounts that are asked about at a time. */
const CONFIRMS_MAX = 50;

/** Open connections by account, and what ends them when their right does. */
export interface Members {
  /** @returns why one more of this account has no place */
  refusalOf(member: Member): Refusal | undefined;
  add(connection: Connection): void;
  remove(connection: Connection): void;
  /** Ends those whose right has run out by the clock, and asks again where no answer came. */
  sweep(): void;
  close(): void;
}

/**
 * Creates the list. Every change of an account's access asks again for each of its connections; a
 * look-up that finds PostgreSQL away is repeated by the sweep, until the keyring's patience ends.
 */
export function createMembers(keyring: Keyring, nowMs: () => number, log: Log): Members {
  const byAccount = new Map<string, Set<Connection>>();
  const doubted = new Set<Connection>();
  const waiting = new Set<Connection>();
  let asking = 0;

  const isOpen = (connection: Connection) =>
    byAccount.get(connection.member.accountId)?.has(connection) === true;
  const settle = (connection: Connection, admitted: Admitted) => {
    if (!isOpen(connection)) return;
    if (admitted.ok) {
      doubted.delete(connection);
      connection.member = admitted.member;
      if (!isAmongFirst(connection, byAccount.get(admitted.member.accountId)!)) {
        const { message, more } = overLimit(admitted.member, byAccount)!;
        connection.fail('connection_limit', message, more);
      }
      return;
    }
    const { code, message, more } = admitted.refusal;
    if (code === 'accounts_unavailable' && !keyring.isStale()) {
      // The sweep asks again; a second answer that was under way may have struck it off.
      doubted.add(connection);
      return;
    }
    connection.fail(code, message, more);
  };
  const pump = () => {
    while (asking < CONFIRMS_MAX) {
      const [connection] = waiting;
      if (connection === undefined) return;
      waiting.delete(connection);
      asking += 1;
      void confirm(keyring, connection.member, connection.address)
        .then((admitted) => settle(connection, admitted))
        .catch((error) => {
          log.error({ err: error }, 'a right could not be confirmed');
          connection.fail('internal', 'A fault of ours.');
        })
        .finally(() => {
          asking -= 1;
          pump();
        });
    }
  };
  const doubt = (connections: Iterable<Connection>) => {
    for (const connection of connections) {
      doubted.add(connection);
      waiting.add(connection);
    }
    pump();
  };
  const all = () => [...byAccount.values()].flatMap((own) => [...own]);
  const unsubscribe = keyring.onChange((accountId) =>
    doubt(accountId === undefined ? all() : (byAccount.get(accountId) ?? [])),
  );

  return {
    refusalOf: (member) => overLimit(member, byAccount),
    add(connection) {
      const { accountId } = connection.member;
      const own = byAccount.get(accountId) ?? new Set();
      byAccount.set(accountId, own.add(connection));
    },
    remove(connection) {
      const { accountId } = connection.member;
      const own = byAccount.get(accountId);
      own?.delete(connection);
      if (own?.size === 0) byAccount.delete(accountId);
      doubted.delete(connection);
    },
    sweep() {
      const now = nowMs();
      if (keyring.isStale()) {
        for (const one of all()) one.fail(UNAVAILABLE.code, UNAVAILABLE.message, UNAVAILABLE.more);
        return;
      }
      const isBusy = waiting.size > 0;
      const due = all().filter((one) => now >= one.member.endsAtMs);
      if (!isBusy) doubt(new Set([...due, ...doubted]));
    },
    close: unsubscribe,
  };
}

/** Why one more connection of an account has no place; undefined when it has. */
function overLimit(
  { accountId, connectionsMax }: Member,
  byAccount: ReadonlyMap<string, ReadonlySet<Connection>>,
): Refusal | undefined {
  const own = byAccount.get(accountId);
  if (own === undefined || own.size < connectionsMax) return undefined;
  return {
    code: 'connection_limit',
    message: `${own.size} of ${connectionsMax} connections are open.`,
    more: { limit: connectionsMax, sessions: [...own].slice(0, LISTED_MAX).map(sessionOf) },
  };
}

/** After a downgrade the oldest connections stay. */
function isAmongFirst(connection: Connection, own: ReadonlySet<Connection>): boolean {
  const { connectionsMax } = connection.member;
  if (own.size <= connectionsMax) return true;
  return [...own].indexOf(connection) < connectionsMax;
}

function sessionOf(connection: Connection) {
  const { session, openedAt, address, member, outbox } = connection;
  return {
    session,
    since: formatTimestamp(openedAt),
    address,
    key: member.hint,
    queue_ms: outbox.queueMs(performance.now()),
  };
}
