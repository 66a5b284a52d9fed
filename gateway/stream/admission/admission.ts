import type { Log } from '../../../lib/log/log.ts';
import { isOriginAllowed } from '../../http/origins.ts';
import type { Principal } from '../hub/principal.ts';
import { Connection, type ConnectionDeps } from '../hub/stream-connection.ts';
import { LIMITS } from '../limits.ts';
import type { Codec } from '../wire/codec.ts';
import type { Handshake, Socket } from '../wire/websocket-server.ts';
import type { AccountConnections } from './account-connections.ts';
import { authenticate, type Credential, refusalOf, type StreamKeyring } from './authenticate.ts';
import type { ConnectionLimiter, Refusal } from './connection-limiter.ts';
import { createWaitingRoom, type Waiting } from './waiting-room.ts';

interface AdmissionDeps {
  readonly keyring: StreamKeyring;
  readonly connectionDeps: ConnectionDeps;
  readonly limiter: ConnectionLimiter;
  readonly accounts: AccountConnections;
  readonly onOpened: (connection: Connection) => void;
  readonly origins: readonly string[];
  readonly log: Log;
  /** Why the process admits no connections yet, or any more. */
  readonly notReady: () => string | undefined;
}

export type Admission = ReturnType<typeof createAdmission>;

/** The admission rules of a process: origin, room in the process, credential, room in the account. */
export function createAdmission(deps: AdmissionDeps) {
  const { keyring, limiter, accounts, origins, notReady } = deps;
  const { unauthenticatedMax, unauthenticatedPerAddressMax } = LIMITS;
  // Two rooms: sockets that never send a credential take no room from those that have sent one.
  const silent = createWaitingRoom(unauthenticatedMax, unauthenticatedPerAddressMax);
  const checked = createWaitingRoom(unauthenticatedMax, unauthenticatedPerAddressMax);
  return {
    limits: LIMITS,
    onFault: (error: unknown) => deps.log.error({ err: error }, 'a socket could not be admitted'),
    /** Counts the socket, and lets it wait. @returns why it is refused */
    enter(one: Waiting, handshake: Handshake): Refusal | undefined {
      const full = limiter.enter(one.network);
      if (!isOriginAllowed(handshake.origin, origins)) return ORIGIN_REFUSED;
      const reason = notReady();
      if (full !== undefined) return full;
      if (reason !== undefined) return refuseNotReady(reason);
      return REFUSALS[(hasCredential(handshake) ? checked : silent).enter(one) ?? 'none'];
    },
    /** The socket has sent its credential after the handshake. @returns why it is refused */
    enterCheck(one: Waiting): Refusal | undefined {
      silent.leave(one);
      return REFUSALS[checked.enter(one) ?? 'none'];
    },
    /** Removes the socket from the counts, whichever side ended it. */
    leave(one: Waiting) {
      silent.leave(one);
      checked.leave(one);
      limiter.leave(one.network);
    },
    authenticate: (credential: Credential, address: string) =>
      authenticate(keyring, credential, address),
    /** @returns why the account may not open another connection */
    refusalOf(principal: Principal) {
      // The process may have begun to stop while the credential was checked.
      const reason = notReady();
      return reason === undefined ? accounts.refusalOf(principal) : refuseNotReady(reason);
    },
    /** Creates the connection of an authenticated client. */
    connect(one: Waiting, socket: Socket, codec: Codec, principal: Principal) {
      checked.leave(one);
      const connection = new Connection(socket, codec, principal, deps.connectionDeps);
      accounts.add(connection);
      deps.onOpened(connection);
      return connection;
    },
  };
}

const ORIGIN_REFUSED = refusalOf(
  'origin_refused',
  'Pages of this origin may not connect; programs may.',
);

const refuseNotReady = (reason: string) =>
  refusalOf('not_ready', `Not ready: ${reason}.`, { retry_after_ms: 1_000 });

const tooManyWaiting = (where = '') =>
  refuseNotReady(`too many connections${where} are waiting to be authenticated`);

export const GAVE_WAY = tooManyWaiting();

/** By the answer of a waiting room. */
const REFUSALS = {
  full: GAVE_WAY,
  full_of_network: tooManyWaiting(' from your address'),
  none: undefined,
};

/** Whether a client authenticates with its handshake rather than with its first frame. */
export const hasCredential = ({
  key,
  ticket,
  proof,
}: Pick<Handshake, 'key' | 'ticket' | 'proof'>) =>
  key !== '' || ticket !== undefined || proof !== undefined;
