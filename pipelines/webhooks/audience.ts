import type { AccountAccess } from '../../lib/access/access.ts';
import {
  ACCOUNT_ACCESS,
  type AccountAccessRow,
  accountAccessOf,
} from '../../lib/access/access-rows.ts';
import { tierOf } from '../../lib/access/entitlement.ts';
import type { Log } from '../../lib/log.ts';
import type { EffectivePill } from '../../lib/order/judge.ts';
import type { QuickPool } from '../../lib/postgres/quick-pool.ts';
import type { WebhookEndpoint } from '../../lib/webhooks/endpoint.ts';
import { type EndpointRow, endpointOf, openHeaders } from '../../lib/webhooks/endpoint-row.ts';
import type { EventType } from '../../lib/webhooks/event-types.ts';
import type { Seal } from '../../lib/webhooks/sealing.ts';
import { type EndpointStanding, standingAt } from '../../lib/webhooks/standing.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { type Breaker, createBreaker } from './breaker.ts';
import { createTokens, type Tokens } from './rate.ts';
import { createSymbolIndex } from './symbol-index.ts';

/** An endpoint as the dispatcher knows it; the same object over all its changes. */
export interface Listener {
  readonly id: string;
  /** As it was read last. */
  readonly endpoint: WebhookEndpoint;
  readonly headers: Readonly<Record<string, string>>;
  readonly challenge: string;
  readonly filter: WebhookEndpoint['filter'];
  readonly breaker: Breaker;
  /** Of `ratePerS`, over all its messages in this process. */
  readonly tokens: Tokens;
  /** First failure after the last success, as far as this process knows. */
  failingSinceMs: number | undefined;
  /** Secrets in force, newest first. */
  secretsAt(nowMs: number): readonly Buffer[];
  /** What it does now: also by the clock, when a subscription ends. */
  standing(nowMs: number): EndpointStanding | 'deleted';
  wantsPills(): boolean;
  /** Whether more may wait for it. */
  hasRoom(): boolean;
  /** Pills were not kept, because too much waits; the first time is told to its owner. */
  refuse(receivedAt: Micros, pills: number): void;
}

/** All endpoints in memory, and who wants what. */
export interface Audience {
  /** Those that want a pill now. */
  of(pill: EffectivePill): readonly Listener[];
  /** Those of an account that want an event now. */
  forEvent(accountId: string, type: EventType): readonly Listener[];
  get(endpointId: string): Listener | undefined;
  /** Reads an account again, or all. @throws what the database says */
  load(accountId?: string): Promise<void>;
  /** An endpoint that is not known yet: it may just have been made. */
  find(endpointId: string): Promise<Listener | undefined>;
  readonly size: number;
}

interface SecretRow {
  readonly endpoint_id: string;
  readonly sealed: Buffer;
  readonly expires_at: Date | null;
}

interface Secret {
  readonly bytes: Buffer;
  readonly untilMs: number;
}

interface Mutable {
  endpoint: WebhookEndpoint;
  headers: Readonly<Record<string, string>>;
  challenge: string;
  secrets: readonly Secret[];
  account: AccountAccess;
  rank: number;
  isDeleted: boolean;
}

export interface AudienceParts {
  readonly pool: QuickPool;
  readonly seal: Seal;
  readonly log: Log;
  /** Whether more may wait for an endpoint. */
  hasRoom(endpointId: string): boolean;
  onRefused(listener: Listener, receivedAt: Micros, pills: number): void;
  onGone(endpointId: string): void;
}

export function createAudience(parts: AudienceParts): Audience {
  const { pool, seal, log } = parts;
  const index = createSymbolIndex<Listener>();
  const listeners = new Map<string, { readonly listener: Listener; readonly state: Mutable }>();
  const byAccount = new Map<string, Set<string>>();
  /** Loads one after another: an older answer must not overwrite a newer one. */
  let loading: Promise<void> = Promise.resolve();
  /** Loads that have not begun, by account; '' = of all. */
  const waiting = new Map<string, Promise<void>>();

  const put = (row: EndpointRow, account: AccountAccess, rank: number, secrets: Secret[]) => {
    const held = listeners.get(row.id);
    if (held !== undefined) index.remove(held.listener);
    const known = held && {
      challenge: held.state.challenge,
      status: held.state.endpoint.status,
    };
    const state: Mutable = {
      endpoint: endpointOf(row),
      headers: openHeaders(seal, row),
      challenge: row.challenge,
      ...{ secrets, account, rank, isDeleted: false },
    };
    const listener = held?.listener ?? createListener(row.id, state, parts);
    if (held !== undefined) Object.assign(held.state, state);
    else listeners.set(row.id, { listener, state });
    // Its owner has begun anew: with another URL, or after it was disabled.
    const isNew = state.challenge !== known?.challenge || row.status !== known?.status;
    if (isNew && row.failing_since === null) listener.breaker.succeeded();
    listener.failingSinceMs = row.failing_since?.getTime();
    if (row.resting_until !== null) {
      listener.breaker.restUntil(performance.now() + row.resting_until.getTime() - Date.now());
    }
    const { eventTypes } = endpointOf(row);
    if (row.status === 'enabled' && eventTypes.includes('pill.published')) index.add(listener);
  };

  const drop = (endpointId: string) => {
    const known = listeners.get(endpointId);
    if (known === undefined) return;
    index.remove(known.listener);
    known.state.isDeleted = true;
    listeners.delete(endpointId);
    parts.onGone(endpointId);
  };

  const read = async (accountId: string | undefined) => {
    const [where, values] =
      accountId === undefined ? ['', []] : ['WHERE account_id = $1', [accountId]];
    const rows = await pool.query<EndpointRow>(
      `SELECT * FROM webhook_endpoints ${where} ORDER BY account_id, created_at, id`,
      values,
    );
    // Most changes are of accounts that have none.
    if (accountId !== undefined && rows.length === 0 && !byAccount.has(accountId)) return;
    const secrets = await pool.query<SecretRow>(
      `SELECT endpoint_id, sealed, expires_at FROM webhook_secrets ${where} ORDER BY id DESC`,
      values,
    );
    const owners = [...new Set(rows.map((row) => row.account_id))];
    const secretsBy = new Map<string, SecretRow[]>();
    for (const secret of secrets) {
      const own = secretsBy.get(secret.endpoint_id);
      if (own === undefined) secretsBy.set(secret.endpoint_id, [secret]);
      else own.push(secret);
    }
    const accounts = await pool.query<AccountAccessRow>(`${ACCOUNT_ACCESS} WHERE a.id = ANY ($1)`, [
      owners,
    ]);
    const access = new Map(accounts.map((row) => [row.account_id, accountAccessOf(row)]));
    const isOfRead = (id: string) => accountId === undefined || id === accountId;
    const alive = new Map<string, Set<string>>();
    for (const row of rows) {
      const account = access.get(row.account_id);
      if (account === undefined) continue;
      const own = alive.get(row.account_id) ?? new Set<string>();
      alive.set(row.account_id, own);
      try {
        put(row, account, own.size, secretsOf(row.id, secretsBy.get(row.id) ?? [], seal));
      } catch (error) {
        log.error({ err: error, endpoint: row.id }, 'an endpoint cannot be read: it gets nothing');
      }
      own.add(row.id);
    }
    for (const [id, endpoints] of byAccount) {
      if (!isOfRead(id)) continue;
      for (const endpoint of endpoints) if (!alive.get(id)?.has(endpoint)) drop(endpoint);
      byAccount.delete(id);
    }
    for (const [id, own] of alive) byAccount.set(id, own);
  };

  const load = (accountId?: string) => {
    const name = accountId ?? '';
    const queued = waiting.get(name) ?? waiting.get('');
    // One that has not begun will see this change as well.
    if (queued !== undefined) return queued;
    const next = loading.then(() => {
      waiting.delete(name);
      return read(accountId);
    });
    waiting.set(name, next);
    loading = next.catch(() => undefined);
    return next;
  };

  return {
    of: (pill) => index.of(pill),
    forEvent(accountId, type) {
      const now = Date.now();
      const own = [...(byAccount.get(accountId) ?? [])].flatMap((id) => {
        const listener = listeners.get(id)?.listener;
        return listener === undefined ? [] : [listener];
      });
      return own.filter(
        (one) => one.standing(now) === 'enabled' && one.endpoint.eventTypes.includes(type),
      );
    },
    get: (endpointId) => listeners.get(endpointId)?.listener,
    load,
    async find(endpointId) {
      if (!listeners.has(endpointId)) {
        const [row] = await pool.query<{ account_id: string }>(
          'SELECT account_id FROM webhook_endpoints WHERE id = $1',
          [endpointId],
        );
        if (row !== undefined) await load(row.account_id);
      }
      return listeners.get(endpointId)?.listener;
    },
    get size() {
      return listeners.size;
    },
  };
}

function createListener(id: string, state: Mutable, parts: AudienceParts): Listener {
  const standing = (nowMs: number) =>
    state.isDeleted
      ? 'deleted'
      : standingAt(state.rank, state.endpoint.status, tierOf(state.account, nowMs));
  const listener: Listener = {
    id,
    breaker: createBreaker(),
    tokens: createTokens(),
    failingSinceMs: undefined,
    get endpoint() {
      return state.endpoint;
    },
    get headers() {
      return state.headers;
    },
    get challenge() {
      return state.challenge;
    },
    get filter() {
      return state.endpoint.filter;
    },
    secretsAt: (nowMs) =>
      state.secrets.filter(({ untilMs }) => nowMs < untilMs).map(({ bytes }) => bytes),
    standing,
    wantsPills: () =>
      standing(Date.now()) === 'enabled' && state.endpoint.eventTypes.includes('pill.published'),
    hasRoom: () => parts.hasRoom(id),
    refuse: (receivedAt, pills) => parts.onRefused(listener, receivedAt, pills),
  };
  return listener;
}

function secretsOf(endpointId: string, rows: readonly SecretRow[], seal: Seal): Secret[] {
  return rows.map(({ sealed, expires_at }) => ({
    bytes: seal.open(sealed, endpointId),
    untilMs: expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
  }));
}
