import type { Keyring } from '../../../lib/access/access.ts';
import type { Log } from '../../../lib/log.ts';
import { LIMITS } from '../limits.ts';
import { Connection, type House } from '../live/connection.ts';
import type { StreamMetrics } from '../metrics.ts';
import { type Admission, isOriginAllowed, type Refusal } from './admission.ts';
import type { Door } from './doorway.ts';
import { authenticate } from './member.ts';
import type { Members } from './members.ts';
import type { Register } from './register.ts';
import type { Sessions } from './sessions.ts';

export interface DoorOptions {
  readonly keyring: Keyring;
  readonly house: House;
  readonly admission: Admission;
  readonly members: Members;
  readonly sessions: Sessions;
  readonly metrics: StreamMetrics;
  readonly records: Register;
  readonly origins: readonly string[];
  readonly log: Log;
  /** Why nobody may come in yet, or any more. */
  readonly notReady: () => string | undefined;
}

/** Joins the rules of who may come in: origin, room, credential, room of the account. */
export function createDoor(options: DoorOptions): Door {
  const { keyring, house, admission, members, sessions, metrics, records, origins, notReady } =
    options;
  const unknown = new Map<string, number>();
  let unknownCount = 0;
  const count = (address: string, step: 1 | -1) => {
    const own = (unknown.get(address) ?? 0) + step;
    unknownCount += step;
    if (own > 0) unknown.set(address, own);
    else unknown.delete(address);
    return own;
  };
  return {
    limits: LIMITS,
    onFault: (error) => options.log.error({ err: error }, 'a socket could not be let in'),
    enter(address, origin) {
      const own = count(address, 1);
      const full = admission.enter(address);
      if (!isOriginAllowed(origin, origins)) return ORIGIN_REFUSED;
      const waits = notReady();
      if (full !== undefined) return full;
      if (waits !== undefined) return tellNotReady(waits);
      if (unknownCount > LIMITS.unauthenticatedMax) return tooManyUnknown();
      const { unauthenticatedPerAddressMax } = LIMITS;
      return own > unauthenticatedPerAddressMax ? tooManyUnknown(' from your address') : undefined;
    },
    leave(address, isKnown) {
      if (!isKnown) count(address, -1);
      admission.leave(address);
    },
    authenticate: (credential, address) => authenticate(keyring, credential, address),
    refusalOf(member) {
      // The process may have begun to stop while the credential was looked up.
      const waits = notReady();
      return waits === undefined ? members.refusalOf(member) : tellNotReady(waits);
    },
    connect(socket, manner, member) {
      count(socket.address, -1);
      const connection = new Connection(socket, manner, member, house);
      sessions.add(connection);
      members.add(connection);
      records.opened(connection);
      metrics.onOpened();
      return connection;
    },
  };
}

const ORIGIN_REFUSED: Refusal = {
  code: 'origin_refused',
  message: 'Pages of this origin may not connect; programs may.',
  more: {},
};

function tooManyUnknown(whose = ''): Refusal {
  return tellNotReady(`too many connections${whose} wait to be authenticated`);
}

function tellNotReady(why: string): Refusal {
  return { code: 'not_ready', message: `Not ready: ${why}.`, more: { retry_after_ms: 1_000 } };
}
