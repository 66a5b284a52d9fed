import type { Log } from '../log.ts';
import { openQuickPool, type QuickPool } from '../postgres/quick-pool.ts';
import type { AccountAccess, Identified, KeyAccess, Keyring, TicketHolder } from './access.ts';
import { type FoundKey, findAccount, findKey } from './access-rows.ts';
import { type AllowList, isAllowed } from './address.ts';
import { type ByAccount, createByAccount } from './by-account.ts';
import { type Changes, followChanges } from './changes.ts';
import { hashKey, isWellFormedKey } from './key-format.ts';
import { createLookUps, type LookUps } from './look-ups.ts';
import { redeemTicket } from './tickets.ts';

/** Keys in memory, about 1 KiB each; beyond, the one that was looked up first is forgotten. */
const KEYS_MAX = 100_000;
const ACCOUNTS_MAX = 100_000;
/**
 * Refused keys are remembered so briefly, and so many: against one client that repeats itself. A
 * new key is never among them: before it was made nobody could have asked for its 190 random bits.
 */
const REFUSALS_MAX = 10_000;
const REFUSAL_MS = 500;
/** PostgreSQL has confirmed within this that nothing has changed unseen. */
const FRESH_MS = 1_000;
/** Known keys go on for so long after PostgreSQL has confirmed last. */
const STALE_MS = 60_000;
const CONNECTIONS_MAX = 4;
/** For a connection, and again for the statement: a caller waits for 1 s at most. */
const QUERY_TIMEOUT_MS = 500;
/** Tickets being redeemed; one more is `unavailable` at once. */
const REDEEMS_MAX = 500;

export interface KeyringOptions {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly pepper: Buffer;
  readonly log: Log;
  /** Names its connections in pg_stat_activity. */
  readonly name: string;
}

type Outcome = KnownKey | { readonly fault: 'unknown' | 'revoked' | 'expired' };

interface KnownKey {
  readonly identified: Extract<Identified, { kind: 'key' }>;
  readonly key: KeyAccess;
  readonly allowList: AllowList;
}

const UNAVAILABLE: Identified = { kind: 'unavailable' };
const MISSING: Identified = { kind: 'refused', fault: 'missing' };
const MALFORMED: Identified = { kind: 'refused', fault: 'malformed' };
const ADDRESS_REFUSED: Identified = { kind: 'address_refused' };

/**
 * Opens a keyring. It connects in the background: while PostgreSQL is away from the start every
 * well-formed key is `unavailable`.
 */
export function openKeyring(options: KeyringOptions): Keyring {
  return openKeyringWith(options, { staleMs: STALE_MS });
}

/** The same with another time for which known keys outlive PostgreSQL. */
export function openKeyringWith(
  options: KeyringOptions,
  limits: { readonly staleMs: number },
): Keyring {
  const keyring = new PostgresKeyring(options, limits.staleMs);
  return {
    identify: (text, address) => keyring.identify(text, address),
    identifyById: (keyId, address) => keyring.identifyById(keyId, address),
    account: (accountId) => keyring.account(accountId),
    redeemTicket: (ticket) => keyring.redeemTicket(ticket),
    onChange: (listener) => keyring.onChange(listener),
    isFresh: () => keyring.isFresh(),
    isStale: () => keyring.isStale(),
    close: () => keyring.close(),
  };
}

class PostgresKeyring implements Keyring {
  readonly #pepper: Buffer;
  readonly #log: Log;
  readonly #staleMs: number;
  readonly #openedAtMs = performance.now();
  readonly #pool: QuickPool;
  readonly #changes: Changes;
  readonly #lookUps: LookUps;
  /**
   * By the key itself: an HMAC on each call costs 8 µs, this 0.5 µs with 100,000 keys. Comparing
   * the text tells nothing by its time: it comes to that only under an equal hash, which is seeded
   * per process.
   */
  readonly #keys: ByAccount<KnownKey> = createByAccount(KEYS_MAX);
  /** By its id, apart: ids are no secret, so nothing that a client sends may be looked up here. */
  readonly #keysById: ByAccount<KnownKey> = createByAccount(KEYS_MAX);
  readonly #accounts: ByAccount<AccountAccess> = createByAccount(ACCOUNTS_MAX);
  readonly #refusals = new Map<
    string,
    { readonly outcome: Exclude<Outcome, KnownKey>; readonly untilMs: number }
  >();
  readonly #listeners = new Set<(accountId: string | undefined) => void>();
  #redeems = 0;

  constructor({ databaseUrl, namespace, pepper, log, name }: KeyringOptions, staleMs: number) {
    this.#pepper = pepper;
    this.#log = log;
    this.#staleMs = staleMs;
    this.#lookUps = createLookUps(log);
    this.#pool = openQuickPool({
      url: databaseUrl,
      namespace,
      log,
      name: `${name}-access`,
      connectionsMax: CONNECTIONS_MAX,
      timeoutMs: QUERY_TIMEOUT_MS,
    });
    this.#changes = followChanges({
      databaseUrl,
      namespace,
      name,
      log,
      onChange: (accountId) => this.#changed(accountId),
    });
  }

  identify(text: string | undefined, address: string): Identified | Promise<Identified> {
    if (text === undefined) return MISSING;
    const known = liveIn(this.#keys, text);
    if (known !== undefined) return this.#answer(known, address);
    if (!isWellFormedKey(text)) return MALFORMED;
    const refusal = this.#refusals.get(text);
    if (refusal !== undefined && performance.now() < refusal.untilMs) {
      return this.#answer(refusal.outcome, address);
    }
    // A copy: what came in may be a slice that keeps a whole request alive.
    const handle = Buffer.from(text, 'latin1').toString('latin1');
    return this.#lookUps
      .run(handle, {
        read: () => findKey(this.#pool, { hash: hashKey(handle, this.#pepper) }),
        accountOf,
        keep: (found) => this.#keep(handle, outcomeOf(found)),
      })
      .then((found) => this.#answerFound(found, address));
  }

  async identifyById(keyId: string, address: string): Promise<Identified> {
    const known = liveIn(this.#keysById, keyId);
    if (known !== undefined) return this.#answer(known, address);
    const found = await this.#lookUps.run(`id ${keyId}`, {
      read: () => findKey(this.#pool, { id: keyId }),
      accountOf,
      keep: (record) => {
        const outcome = outcomeOf(record);
        if (!('fault' in outcome)) {
          this.#keysById.put(keyId, outcome.key.account.id, outcome);
        }
      },
    });
    return this.#answerFound(found, address);
  }

  async account(accountId: string): Promise<AccountAccess | undefined | 'unavailable'> {
    if (this.isStale()) return 'unavailable';
    const known = this.#accounts.get(accountId);
    if (known !== undefined) return known;
    return this.#lookUps.run(`account ${accountId}`, {
      read: () => findAccount(this.#pool, accountId),
      accountOf: (account) => account?.id,
      keep: (account) => {
        if (account !== undefined) this.#accounts.put(accountId, accountId, account);
      },
    });
  }

  async redeemTicket(ticket: string): Promise<TicketHolder | undefined | 'unavailable'> {
    if (this.isStale() || this.#redeems >= REDEEMS_MAX) return 'unavailable';
    this.#redeems += 1;
    try {
      const redeemed = await redeemTicket(this.#pool, ticket);
      if (redeemed === undefined) return undefined;
      const account = await this.account(redeemed.accountId);
      if (account === undefined || account === 'unavailable') return account;
      return { account, keyId: redeemed.keyId, sessionHash: redeemed.sessionHash };
    } catch (error) {
      this.#log.warn({ err: error }, 'a ticket cannot be redeemed');
      return 'unavailable';
    } finally {
      this.#redeems -= 1;
    }
  }

  onChange(listener: (accountId: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  isFresh(): boolean {
    const confirmedAtMs = this.#changes.confirmedAtMs();
    return confirmedAtMs !== undefined && performance.now() - confirmedAtMs < FRESH_MS;
  }

  isStale(): boolean {
    const confirmedAtMs = this.#changes.confirmedAtMs() ?? this.#openedAtMs;
    return performance.now() - confirmedAtMs >= this.#staleMs;
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#changes.close();
    await this.#pool.close();
  }

  #answer(outcome: Outcome | 'unavailable', address: string): Identified {
    if (outcome === 'unavailable' || this.isStale()) return UNAVAILABLE;
    if ('fault' in outcome) return { kind: 'refused', fault: outcome.fault };
    return isAllowed(outcome.allowList, address) ? outcome.identified : ADDRESS_REFUSED;
  }

  #answerFound(found: FoundKey | undefined | 'unavailable', address: string): Identified {
    return this.#answer(found === 'unavailable' ? found : outcomeOf(found), address);
  }

  #keep(handle: string, outcome: Outcome): void {
    if (!('fault' in outcome)) {
      this.#keys.put(handle, outcome.key.account.id, outcome);
      return;
    }
    if (this.#refusals.size >= REFUSALS_MAX) {
      this.#refusals.delete(this.#refusals.keys().next().value!);
    }
    this.#refusals.delete(handle);
    this.#refusals.set(handle, { outcome, untilMs: performance.now() + REFUSAL_MS });
  }

  #changed(accountId: string | undefined): void {
    this.#lookUps.changed(accountId);
    this.#keys.drop(accountId);
    this.#keysById.drop(accountId);
    this.#accounts.drop(accountId);
    this.#refusals.clear();
    for (const listener of this.#listeners) {
      try {
        listener(accountId);
      } catch (error) {
        this.#log.error({ err: error }, 'a listener to changes of access failed');
      }
    }
  }
}

/** Unless its time is over: then it goes the way of every refused key, a look-up. */
function liveIn(keys: ByAccount<KnownKey>, handle: string): KnownKey | undefined {
  const known = keys.get(handle);
  if (known === undefined) return undefined;
  const { expiresAtMs } = known.key;
  if (expiresAtMs === undefined || Date.now() < expiresAtMs) return known;
  keys.delete(handle);
  return undefined;
}

function accountOf(found: FoundKey | undefined): string | undefined {
  return found?.key.account.id;
}

function outcomeOf(record: FoundKey | undefined): Outcome {
  if (record === undefined) return { fault: 'unknown' };
  const { key, allowList, isRevoked } = record;
  if (isRevoked) return { fault: 'revoked' };
  if (key.expiresAtMs !== undefined && Date.now() >= key.expiresAtMs) return { fault: 'expired' };
  return { identified: { kind: 'key', key }, key, allowList };
}
