import type { Seal } from '../../../domain/access/sealing.ts';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { endpointOf, openHeaders } from '../../../domain/webhooks/endpoints/endpoint-row.ts';
import type { EventType } from '../../../domain/webhooks/events/event-catalogue.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { StatementPool } from '../../../lib/postgres/statement-pool.ts';
import { type LoadedEndpoint, readEndpoints } from './endpoint-rows.ts';
import {
  createRegisteredEndpoint,
  type EndpointData,
  type RegisteredEndpoint,
  type RegisteredEndpointDeps,
} from './registered-endpoint.ts';
import { createSymbolIndex } from './symbol-index.ts';

export type EndpointRegistry = ReturnType<typeof createEndpointRegistry>;

interface EndpointRegistryDeps extends RegisteredEndpointDeps {
  readonly pool: StatementPool;
  readonly seal: Seal;
  readonly log: Log;
  onRemoved(endpointId: string): void;
}

/** Creates an empty registry of all endpoints, indexed by the pills and events that they receive. */
export function createEndpointRegistry(deps: EndpointRegistryDeps) {
  const { pool } = deps;
  const table = createEndpointTable(deps);
  const load = createLoadQueue(async (accountId) => {
    table.replace(accountId, await readEndpoints(pool, accountId));
  });
  return {
    /** Reads the endpoints of an account again, or all. @throws any database error */
    load,
    /** Endpoints whose filter a pill passes. */
    matching: table.matching,
    get: table.get,
    /** Enabled endpoints of an account that asked for a type of event. */
    forEvent(accountId: string, type: EventType): readonly RegisteredEndpoint[] {
      const now = Date.now();
      return table
        .ofAccount(accountId)
        .filter((one) => one.state(now) === 'enabled' && one.settings.eventTypes.includes(type));
    },
    /** Also finds an endpoint that was created a moment ago. @throws any database error */
    async findOrLoad(endpointId: string): Promise<RegisteredEndpoint | undefined> {
      if (table.get(endpointId) === undefined) {
        const [row] = await pool.query<{ account_id: string }>(
          'SELECT account_id FROM webhook_endpoints WHERE id = $1',
          [endpointId],
        );
        if (row !== undefined) await load(row.account_id);
      }
      return table.get(endpointId);
    },
    get size(): number {
      return table.size();
    },
    /** Enabled endpoints whose last attempts have failed. */
    failing(): number {
      const now = Date.now();
      return table
        .all()
        .filter((one) => one.failingSinceMs !== undefined && one.state(now) === 'enabled').length;
    },
  };
}

/** The endpoints by id, by account and by symbol. */
function createEndpointTable(deps: EndpointRegistryDeps) {
  const index = createSymbolIndex<RegisteredEndpoint>();
  const byId = new Map<string, Entry>();
  const byAccount = new Map<string, Set<string>>();

  const put = (loaded: LoadedEndpoint, rank: number) => {
    const { row } = loaded;
    const known = byId.get(row.id);
    const before = known?.data.now;
    if (known !== undefined) index.remove(known.endpoint);
    const now = dataOf(loaded, rank, deps.seal);
    const entry = known ?? createEntry(row.id, now, deps);
    entry.data.now = now;
    byId.set(row.id, entry);
    takeOverFailures(entry, before);
    const { status, eventTypes } = now.settings;
    if (status === 'enabled' && eventTypes.includes('pill.published')) index.add(entry.endpoint);
  };

  const remove = (endpointId: string) => {
    const known = byId.get(endpointId);
    if (known === undefined) return;
    index.remove(known.endpoint);
    known.data.now = { ...known.data.now, isDeleted: true };
    byId.delete(endpointId);
    deps.onRemoved(endpointId);
  };

  return {
    matching: (pill: EffectivePill) => index.matching(pill),
    get: (endpointId: string) => byId.get(endpointId)?.endpoint,
    size: () => byId.size,
    all: () => [...byId.values()].map(({ endpoint }) => endpoint),
    ofAccount: (accountId: string) =>
      [...(byAccount.get(accountId) ?? [])].flatMap((id) => byId.get(id)?.endpoint ?? []),
    /** Replaces the endpoints of an account, or all, by the rows that were read. */
    replace(accountId: string | undefined, loaded: readonly LoadedEndpoint[]) {
      const present = new Map<string, Set<string>>();
      for (const one of loaded) {
        const own = present.get(one.row.account_id) ?? new Set<string>();
        present.set(one.row.account_id, own);
        try {
          put(one, own.size);
        } catch (err) {
          const fields = { err, endpoint: one.row.id };
          deps.log.error(fields, 'an endpoint cannot be read, so it gets nothing');
        }
        own.add(one.row.id);
      }
      const replaced = accountId === undefined ? [...byAccount.keys()] : [accountId];
      for (const id of replaced) {
        for (const endpointId of byAccount.get(id) ?? []) {
          if (!present.get(id)?.has(endpointId)) remove(endpointId);
        }
        byAccount.delete(id);
      }
      for (const [id, own] of present) byAccount.set(id, own);
    },
  };
}

type Entry = ReturnType<typeof createEntry>;

function createEntry(id: string, now: EndpointData, deps: RegisteredEndpointDeps) {
  const data = { now };
  return { data, endpoint: createRegisteredEndpoint(id, data, deps) };
}

/** @throws SealError */
function dataOf({ row, secrets, account }: LoadedEndpoint, rank: number, seal: Seal): EndpointData {
  return {
    settings: endpointOf(row),
    headers: openHeaders(seal, row),
    challenge: row.challenge,
    secrets: secrets.map(({ sealed, expires_at }) => ({
      bytes: seal.open(sealed, row.id),
      untilMs: expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
    })),
    account,
    rank,
    isDeleted: false,
  };
}

/** Takes over failures that other dispatchers have written, or a fresh start by the owner. */
function takeOverFailures({ endpoint, data }: Entry, before: EndpointData | undefined): void {
  const { settings, challenge } = data.now;
  const { failingSince, restingUntil } = settings;
  // With another URL, or after it was disabled, the endpoint starts from a clean state.
  const isFresh = challenge !== before?.challenge || settings.status !== before.settings.status;
  if (isFresh && failingSince === undefined) endpoint.breaker.succeeded();
  endpoint.failingSinceMs = failingSince?.getTime();
  if (restingUntil !== undefined) {
    endpoint.breaker.restUntil(performance.now() + restingUntil.getTime() - Date.now());
  }
}

/** Runs loads one after another: an older answer must not overwrite a newer one. */
function createLoadQueue(read: (accountId: string | undefined) => Promise<void>) {
  let last: Promise<void> = Promise.resolve();
  /** Loads that have not begun, by account; '' = all accounts. */
  const waiting = new Map<string, Promise<void>>();
  return (accountId?: string): Promise<void> => {
    const key = accountId ?? '';
    // A load that has not begun will see this change as well.
    const queued = waiting.get(key) ?? waiting.get('');
    if (queued !== undefined) return queued;
    const next = last.then(() => {
      waiting.delete(key);
      return read(accountId);
    });
    waiting.set(key, next);
    last = next.catch(() => undefined);
    return next;
  };
}
