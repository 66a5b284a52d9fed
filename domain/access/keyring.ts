import type { Log } from '../../lib/log/log.ts';
import { openStatementPool, type StatementPool } from '../../lib/postgres/statement-pool.ts';
import { followAccessChanges } from './access-changes.ts';
import { type FoundKey, findAccount, findKey } from './access-rows.ts';
import type { AccountAccess, Identified, KeyAccess, TicketHolder } from './account-access.ts';
import { createAccountCache } from './account-cache.ts';
import { type AllowList, isAllowed } from './allow-list.ts';
import { hashesOf, isWellFormedKey } from './key-format.ts';
import { createKeyRehash, type HashedKey } from './key-rehash.ts';
import { createNonces } from './nonces.ts';
import type { Pepper } from './pepper.ts';
import { createRecentRefusals } from './recent-refusals.ts';
import { createSchemeLookups } from './scheme-lookups.ts';
import { isSchemeId } from './scheme-rows.ts';
import { noteAccountEvent } from './security-events.ts';
import { createSingleFlight } from './single-flight.ts';
import { redeemStreamTicket } from './stream-tickets.ts';

/** Keys in memory, about 1 KiB each; beyond that, the oldest one is evicted. */
const KEYS_MAX = 100_000;
const ACCOUNTS_MAX = 100_000;
/** The keyring is fresh for this long after PostgreSQL confirmed that no change was missed. */
const FRESH_MS = 1_000;
/** Cached keys are accepted for this long after the last confirmation by PostgreSQL. */
const STALE_MS = 60_000;
const CONNECTIONS_MAX = 4;
/** For a connection, and again for the statement: a caller waits at most 1 s. */
const QUERY_TIMEOUT_MS = 500;
/** Tickets being redeemed; beyond that, a ticket is `unavailable` at once. */
const REDEEMS_MAX = 500;

const NEVER_MS = Number.NEGATIVE_INFINITY;
const UNAVAILABLE: Identified = { kind: 'unavailable' };
const MISSING: Identified = { kind: 'refused', fault: 'missing' };
const MALFORMED: Identified = { kind: 'refused', fault: 'malformed' };
const ADDRESS_REFUSED: Identified = { kind: 'address_refused' };
const KEYS_REFUSED: Identified = { kind: 'keys_refused' };

interface KnownKey extends HashedKey {
  readonly identified: Extract<Identified, { kind: 'key' }>;
  readonly key: KeyAccess;
  readonly allowLists: readonly AllowList[];
  readonly isSecretRefused: boolean;
}

interface Fault {
  readonly fault: 'unknown' | 'revoked' | 'expired';
  /** Account of a revoked or expired key. */
  readonly accountId?: string;
}

export type Keyring = ReturnType<typeof openKeyring>;

/**
 * Opens a keyring: it identifies keys from memory, and follows every change of access within a second.
 * It connects in the background: until PostgreSQL is first reached, every well-formed key is
 * `unavailable`.
 * @param options `name` names its connections in pg_stat_activity
 */
export function openKeyring(options: {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly pepper: Pepper;
  readonly log: Log;
  readonly name: string;
  readonly staleMs?: number;
  readonly queryTimeoutMs?: number;
}) {
  const { databaseUrl, namespace, log, name, staleMs = STALE_MS } = options;
  const { queryTimeoutMs = QUERY_TIMEOUT_MS } = options;
  const openedAtMs = performance.now();
  const pool = openStatementPool({
    url: databaseUrl,
    namespace,
    log,
    name: `${name}-access`,
    connectionsMax: CONNECTIONS_MAX,
    timeoutMs: queryTimeoutMs,
  });
  const listeners = new Set<(accountId: string | undefined) => void>();
  const onChange = (accountId: string | undefined) => {
    lookups.invalidate(accountId);
    schemes.drop(accountId);
    for (const listener of listeners) {
      try {
        listener(accountId);
      } catch (error) {
        log.error({ err: error }, 'a listener for access changes failed');
      }
    }
  };
  const changes = followAccessChanges({ databaseUrl, namespace, name, log, onChange });
  const isStale = () => performance.now() - (changes.confirmedAtMs() ?? openedAtMs) >= staleMs;
  const flights = createSingleFlight(log, 2 * queryTimeoutMs);
  const lookups = createLookups(pool, flights, options, isStale);
  const schemes = createSchemeLookups(pool, flights, isStale);
  const { identify, account } = lookups;
  const nonces = createNonces(pool, log);
  return {
    identify,
    /** Identifies a key or scheme by its id, e.g. that of a socket or of a ticket. */
    identifyById: (id: string, address: string) =>
      isSchemeId(id) ? schemes.identify(id, address) : lookups.identifyById(id, address),
    account,
    /** An authentication scheme; undefined when there is none of this id. */
    scheme: schemes.find,
    useNonce: nonces.use,
    redeemTicket: createRedeem({ pool, log, isStale, account }),
    /**
     * Calls back when the access of an account may have changed; undefined = any account: check every
     * open socket again. @returns a function that unsubscribes
     */
    onChange(listener: (accountId: string | undefined) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Whether PostgreSQL confirmed within the last second that no change was missed. */
    isFresh: () => performance.now() - (changes.confirmedAtMs() ?? NEVER_MS) < FRESH_MS,
    /** Whether cached keys are refused because PostgreSQL has been unavailable for too long. */
    isStale,
    async close(): Promise<void> {
      listeners.clear();
      await changes.close();
      await nonces.close();
      await pool.close();
    },
  };
}

function createLookups(
  pool: StatementPool,
  flights: ReturnType<typeof createSingleFlight>,
  { pepper, log }: { readonly pepper: Pepper; readonly log: Log },
  isStale: () => boolean,
) {
  const { keys, keysById, accounts, refusals, drop } = createCaches();
  const rehash = createKeyRehash(pool, pepper, log);
  const keep = createKeep({ keys, refusals }, rehash.note);
  const { answer, answerUse, answerFound } = createAnswers(isStale);
  return {
    /**
     * Identifies a key. Synchronous when the key is cached (the hot path), else one database read.
     * @param text the header's value; undefined when there is no header
     * @param address of the client, as the server sees it
     */
    identify(text: string | undefined, address: string): Identified | Promise<Identified> {
      if (text === undefined) return MISSING;
      const known = unexpiredIn(keys, text);
      if (known !== undefined) {
        rehash.note(known, text);
        return answerUse(known, address);
      }
      if (!isWellFormedKey(text)) return MALFORMED;
      const refusal = refusals.get(text);
      if (refusal !== undefined) return answerUse(refusal, address);
      // A copy, because the text may be a slice that keeps the whole request in memory.
      const key = Buffer.from(text, 'latin1').toString('latin1');
      return flights
        .run(key, {
          read: () => findKey(pool, { hashes: hashesOf(key, pepper) }),
          accountOf,
          keep: (found) => keep(key, outcomeOf(found)),
        })
        .then((found) =>
          found === 'unavailable' ? UNAVAILABLE : answerUse(outcomeOf(found), address),
        );
    },
    /** Identifies a key by its id, e.g. the key of a socket or of a ticket. */
    async identifyById(keyId: string, address: string): Promise<Identified> {
      const known = unexpiredIn(keysById, keyId);
      if (known !== undefined) return answer(known, address);
      const found = await flights.run(`id ${keyId}`, {
        read: () => findKey(pool, { id: keyId }),
        accountOf,
        keep: (record) => {
          const outcome = outcomeOf(record);
          if (!('fault' in outcome)) keysById.put(keyId, outcome.key.account.id, outcome);
        },
      });
      return answerFound(found, address);
    },
    /** An account's access, for signed-in users; undefined when the account does not exist. */
    async account(accountId: string): Promise<AccountAccess | undefined | 'unavailable'> {
      if (isStale()) return 'unavailable';
      const known = accounts.get(accountId);
      if (known !== undefined) return known;
      const read = () => findAccount(pool, accountId);
      const keep = (account: AccountAccess | undefined) =>
        account && accounts.put(accountId, accountId, account);
      const id = `account ${accountId}`;
      return flights.run(id, { read, accountOf: (account) => account?.id, keep });
    },
    invalidate(accountId: string | undefined): void {
      flights.invalidate(accountId);
      drop(accountId);
    },
  };
}

/** Caches what was found for a key. */
function createKeep(
  { keys, refusals }: Pick<ReturnType<typeof createCaches>, 'keys' | 'refusals'>,
  onUse: (known: KnownKey, text: string) => void,
) {
  return (text: string, outcome: KnownKey | Fault): void => {
    if ('fault' in outcome) refusals.put(text, outcome);
    else {
      keys.put(text, outcome.key.account.id, outcome);
      onUse(outcome, text);
    }
  };
}

/** Answers of the lookups, which depend on whether the caches are still trusted. */
function createAnswers(isStale: () => boolean) {
  const answer = (outcome: KnownKey | Fault, address: string) =>
    isStale() ? UNAVAILABLE : identifiedOf(outcome, address);
  /** The answer to a client that brought the key: a refusal is noted for its account. */
  const answerUse = (outcome: KnownKey | Fault, address: string) => {
    const identified = answer(outcome, address);
    if (identified.kind !== 'key') noteRefusal(identified, outcome, address);
    return identified;
  };
  const answerFound = (found: FoundKey | undefined | 'unavailable', address: string) =>
    found === 'unavailable' ? UNAVAILABLE : answer(outcomeOf(found), address);
  return { answer, answerUse, answerFound };
}

function createCaches() {
  /**
   * By the key itself: an HMAC on each call costs 8 µs, this 0.5 µs with 100,000 keys. The time of
   * the text comparison leaks nothing: texts are compared only under an equal hash, which is seeded
   * per process.
   */
  const keys = createAccountCache<KnownKey>(KEYS_MAX);
  /** By key id, in a cache of its own: ids are not secret, so clients' input is never looked up here. */
  const keysById = createAccountCache<KnownKey>(KEYS_MAX);
  const accounts = createAccountCache<AccountAccess>(ACCOUNTS_MAX);
  const refusals = createRecentRefusals<Fault>();
  const drop = (accountId: string | undefined) => {
    for (const cache of [keys, keysById, accounts]) cache.drop(accountId);
    refusals.clear();
  };
  return { keys, keysById, accounts, refusals, drop };
}

/** Redeems single-use tickets. */
function createRedeem({
  pool,
  log,
  isStale,
  account: accountOfId,
}: {
  readonly pool: StatementPool;
  readonly log: Log;
  readonly isStale: () => boolean;
  readonly account: (id: string) => Promise<AccountAccess | undefined | 'unavailable'>;
}) {
  let running = 0;
  return async (ticket: string): Promise<TicketHolder | undefined | 'unavailable'> => {
    if (isStale() || running >= REDEEMS_MAX) return 'unavailable';
    running += 1;
    try {
      const redeemed = await redeemStreamTicket(pool, ticket);
      if (redeemed === undefined) return undefined;
      const { accountId, ...holder } = redeemed;
      const account = await accountOfId(accountId);
      if (account === undefined || account === 'unavailable') return account;
      return { account, ...holder };
    } catch (error) {
      log.warn({ err: error }, 'a ticket cannot be redeemed');
      return 'unavailable';
    } finally {
      running -= 1;
    }
  };
}

/** The cached key, unless it has expired: an expired key is looked up like any refused one. */
function unexpiredIn(
  keys: ReturnType<typeof createAccountCache<KnownKey>>,
  handle: string,
): KnownKey | undefined {
  const known = keys.get(handle);
  if (known === undefined) return undefined;
  const { expiresAtMs } = known.key;
  if (expiresAtMs === undefined || Date.now() < expiresAtMs) return known;
  keys.delete(handle);
  return undefined;
}

function identifiedOf(outcome: KnownKey | Fault, address: string): Identified {
  if ('fault' in outcome) return { kind: 'refused', fault: outcome.fault };
  if (outcome.isSecretRefused) return KEYS_REFUSED;
  return outcome.allowLists.every((list) => isAllowed(list, address))
    ? outcome.identified
    : ADDRESS_REFUSED;
}

function noteRefusal(answered: Identified, outcome: KnownKey | Fault, address: string): void {
  const accountId = 'fault' in outcome ? outcome.accountId : outcome.key.account.id;
  if (accountId === undefined || answered.kind === 'unavailable') return;
  const event = answered.kind === 'refused' ? `key_${answered.fault}` : answered.kind;
  noteAccountEvent({ accountId, action: 'access.refused', actor: 'system', event, address });
}

function accountOf(found: FoundKey | undefined): string | undefined {
  return found?.key.account.id;
}

function outcomeOf(record: FoundKey | undefined): KnownKey | Fault {
  if (record === undefined) return { fault: 'unknown' };
  const { key, allowLists, isRevoked, pepper, isSecretRefused } = record;
  const { id: accountId } = key.account;
  if (isRevoked) return { fault: 'revoked', accountId };
  if (key.expiresAtMs !== undefined && Date.now() >= key.expiresAtMs) {
    return { fault: 'expired', accountId };
  }
  return { identified: { kind: 'key', key }, key, allowLists, pepper, isSecretRefused };
}
