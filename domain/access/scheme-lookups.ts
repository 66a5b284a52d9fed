import type { StatementPool } from '../../lib/postgres/statement-pool.ts';
import type { Identified } from './account-access.ts';
import { createAccountCache } from './account-cache.ts';
import { createRecentRefusals } from './recent-refusals.ts';
import { type FoundScheme, findScheme, isAddressAllowed, schemeFault } from './scheme-rows.ts';
import { noteAccountEvent } from './security-events.ts';
import type { createSingleFlight } from './single-flight.ts';

/** Schemes in memory, about 2 KiB each; beyond that, the oldest one is forgotten. */
const SCHEMES_MAX = 10_000;

const UNAVAILABLE: Identified = { kind: 'unavailable' };

/** Finds authentication schemes by id, from memory or by one read; changes of access drop them. */
export function createSchemeLookups(
  pool: StatementPool,
  flights: ReturnType<typeof createSingleFlight>,
  isStale: () => boolean,
) {
  const schemes = createAccountCache<FoundScheme>(SCHEMES_MAX);
  const unknown = createRecentRefusals<'unknown'>();
  /** Synchronous when the scheme is cached. @param id of the right form */
  const find = (
    id: string,
  ): FoundScheme | undefined | 'unavailable' | Promise<FoundScheme | undefined | 'unavailable'> => {
    if (isStale()) return 'unavailable';
    const known = schemes.get(id);
    if (known !== undefined) return known;
    if (unknown.get(id) !== undefined) return undefined;
    return flights.run(`scheme ${id}`, {
      read: () => findScheme(pool, id),
      accountOf: (found) => found?.access.account.id,
      keep(found) {
        if (found === undefined) unknown.put(id, 'unknown');
        else schemes.put(id, found.access.account.id, found);
      },
    });
  };
  return {
    find,
    /** Whether a scheme that accepted a signature or token before is still accepted. */
    async identify(id: string, address: string): Promise<Identified> {
      const found = await find(id);
      if (found === 'unavailable' || isStale()) return UNAVAILABLE;
      if (found === undefined) return { kind: 'refused', fault: 'unknown' };
      return acceptScheme(found, address);
    },
    drop(accountId: string | undefined): void {
      schemes.drop(accountId);
      unknown.clear();
    },
  };
}

/** The access of a scheme whose proof holds, if the scheme is accepted now and from this address. */
export function acceptScheme(found: FoundScheme, address: string): Identified {
  const fault = schemeFault(found, Date.now());
  if (fault !== undefined) {
    return { kind: 'refused', fault: fault === 'expired' ? 'expired' : 'revoked' };
  }
  if (isAddressAllowed(found, address)) return { kind: 'key', key: found.access };
  noteAccountEvent({
    accountId: found.access.account.id,
    action: 'access.refused',
    actor: 'system',
    event: 'address_refused',
    address,
  });
  return { kind: 'address_refused' };
}
