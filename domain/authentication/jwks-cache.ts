import { LRUCache } from 'lru-cache';
import type { Log } from '../../lib/log/log.ts';
import { type Jwks, type JwksFetch, keyOf } from './jwks.ts';

export const JWKS_LIMITS = {
  /** Keys are read again after this time, while the known ones go on serving. */
  freshMs: 600_000,
  /** Known keys serve for this long while the issuer is away. */
  staleMs: 86_400_000,
  /** Time between the beginnings of two fetches of one scheme. It is counted before each fetch. */
  coolDownMs: 30_000,
  /** Issuers in memory; beyond that, the least recently used one is forgotten. */
  issuersMax: 1_000,
  /** Fetches at a time, over all issuers; more are not begun. */
  fetchesMax: 20,
} as const;

interface Entry {
  keys: Jwks | undefined;
  fetchedAtMs: number;
  /** When the last fetch began. */
  beganAtMs: number;
  running: Promise<void> | undefined;
}

export type JwksCache = ReturnType<typeof createJwksCache>;

/**
 * Keeps the public keys of issuers, by scheme, so that one customer's issuer affects no other. A
 * fetch is shared by all who wait for it, and at most one begins in `coolDownMs`, however many
 * tokens name an unknown key.
 */
export function createJwksCache({
  fetch,
  log,
  nowMs = () => performance.now(),
  limits = JWKS_LIMITS,
}: {
  readonly fetch: JwksFetch;
  readonly log: Pick<Log, 'warn'>;
  readonly nowMs?: () => number;
  readonly limits?: Readonly<Record<keyof typeof JWKS_LIMITS, number>>;
}) {
  const entries = new LRUCache<string, Entry>({ max: limits.issuersMax });
  let fetches = 0;

  const refresh = (id: string, url: string, entry: Entry): Promise<void> => {
    if (entry.running !== undefined) return entry.running;
    const now = nowMs();
    if (now - entry.beganAtMs < limits.coolDownMs || fetches >= limits.fetchesMax) {
      return Promise.resolve();
    }
    entry.beganAtMs = now;
    fetches += 1;
    entry.running = fetch(url)
      .then((keys) => {
        entry.keys = keys;
        entry.fetchedAtMs = nowMs();
      })
      .catch((error: Error) =>
        log.warn({ scheme: id, reason: error.message }, 'no keys of an issuer'),
      )
      .finally(() => {
        fetches -= 1;
        entry.running = undefined;
      });
    return entry.running;
  };
  const usable = ({ keys, fetchedAtMs }: Entry) =>
    keys !== undefined && nowMs() - fetchedAtMs < limits.staleMs ? keys : undefined;

  return {
    /**
     * The key of an issuer, imported for an algorithm.
     * @returns `unknown_key`: the issuer's keys are known and this is not among them
     */
    async key(
      id: string,
      url: string,
      wanted: { readonly kid: string; readonly alg: string },
    ): Promise<Awaited<ReturnType<typeof keyOf>> | 'unknown_key' | 'unavailable'> {
      let entry = entries.get(id);
      if (entry === undefined) {
        const never = Number.NEGATIVE_INFINITY;
        entry = { keys: undefined, fetchedAtMs: never, beganAtMs: never, running: undefined };
        entries.set(id, entry);
      }
      const known = usable(entry);
      const found = known && (await keyOf(known, wanted));
      const isOld = nowMs() - entry.fetchedAtMs >= limits.freshMs;
      if (found !== undefined) {
        if (isOld) void refresh(id, url, entry);
        return found;
      }
      await refresh(id, url, entry);
      const keys = usable(entry);
      if (keys === undefined) return 'unavailable';
      return (await keyOf(keys, wanted)) ?? 'unknown_key';
    },
  };
}
