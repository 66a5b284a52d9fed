import { randomBytes } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import { tierOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import { TIERS } from '../access/tiers.ts';
import { lockAccount, readAccountAccess } from '../accounts/account-row.ts';
import { type AttemptLimit, createAttempts } from '../accounts/attempts.ts';
import { type Requester, writeAudit } from '../accounts/audit.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { dropDeliveries, keepTest } from './deliveries.ts';
import type { WebhookEndpoint } from './endpoint.ts';
import { planChange } from './endpoint-change.ts';
import { type EndpointFault, filterFaults, headerFaults } from './endpoint-check.ts';
import { type EndpointRow, endpointOf, openHeaders, selectRanked } from './endpoint-row.ts';
import { type EndpointSettings, rowOf } from './endpoint-settings.ts';
import { originOf } from './origin.ts';
import { wakeEndpoints } from './queue.ts';
import { insertSecret, type Rotated, rotateSecret } from './rotation.ts';
import type { Seal } from './sealing.ts';
import { hasPlace } from './standing.ts';
import { createTurns } from './turns.ts';

export const ENDPOINT_LIMITS = {
  /** Made by an account within an hour, also those that were deleted since. */
  madePerHourMax: 60,
  pageMax: 200,
  pageDefault: 100,
} as const;

/** Test sends of an account, at one process: also those after a change of the URL. */
export const TEST_LIMIT: AttemptLimit = { max: 10, windowMs: 60_000 };

export interface OwnedEndpoint extends Requester {
  readonly accountId: string;
  readonly endpointId: string;
}

export interface EndpointChange extends OwnedEndpoint {
  readonly settings: Partial<EndpointSettings>;
  readonly status?: 'enabled' | 'disabled' | undefined;
}

/** An endpoint as its owner sees it. */
export interface ListedEndpoint extends WebhookEndpoint {
  /** Of its own headers; their values are not shown again. */
  readonly headerNames: readonly string[];
  /** How many of the account are older. */
  readonly rank: number;
}

interface Invalid {
  readonly kind: 'invalid';
  readonly faults: readonly EndpointFault[];
}
interface Wait {
  readonly kind: 'too_many_made' | 'too_many_tests';
  readonly retryAfterS: number;
}

export type EndpointCreated =
  | { readonly kind: 'ok'; readonly endpoint: ListedEndpoint; readonly secret: string }
  | { readonly kind: 'limit'; readonly limit: number }
  /** The tier was changed a moment ago. */
  | { readonly kind: 'not_entitled' }
  | Invalid
  | Wait;

export type EndpointChanged =
  | { readonly kind: 'ok'; readonly endpoint: ListedEndpoint }
  /** Why it is not possible in its state. */
  | { readonly kind: 'conflict'; readonly detail: string }
  | Invalid
  | Wait;

export type TestSent = { readonly kind: 'ok'; readonly messageId: string } | Wait;

/** Webhook endpoints of accounts. Another account's is as one that does not exist: undefined. */
export interface Endpoints {
  create(
    wanted: Requester & { accountId: string; settings: EndpointSettings },
  ): Promise<EndpointCreated>;
  /** Oldest first. @param page `after` is the id of the last one of the page before */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<readonly ListedEndpoint[]>;
  get(accountId: string, endpointId: string): Promise<ListedEndpoint | undefined>;
  change(change: EndpointChange): Promise<EndpointChanged | undefined>;
  remove(request: OwnedEndpoint): Promise<ListedEndpoint | undefined>;
  rotate(request: OwnedEndpoint & { readonly overlapS: number }): Promise<Rotated | undefined>;
  /** Posts an `endpoint.test`. */
  test(request: OwnedEndpoint): Promise<TestSent | undefined>;
}

export interface EndpointsOptions {
  readonly db: Database;
  readonly seal: Seal;
  /** Looks at the form of a URL and at where its name leads now. */
  readonly checkUrl: (url: string) => Promise<{ code: string; detail: string } | undefined>;
}

/** Every change is in the audit log, and told to the dispatchers by a trigger of the tables. */
export function createEndpoints({ db, seal, checkUrl }: EndpointsOptions): Endpoints {
  const tests = createAttempts(TEST_LIMIT);
  const inTurn = createTurns();
  const listed = (row: EndpointRow & { readonly rank: string }): ListedEndpoint => ({
    ...endpointOf(row),
    headerNames: Object.keys(openHeaders(seal, row)),
    rank: Number(row.rank),
  });
  const get = async (on: Database, accountId: string, endpointId: string) => {
    const row = await selectRanked(on, accountId)
      .selectAll()
      .where('id', '=', endpointId)
      .executeTakeFirst();
    return row === undefined ? undefined : listed(row);
  };
  const urlFaults = async (url: string | undefined): Promise<EndpointFault[]> => {
    const fault = url === undefined ? undefined : await checkUrl(url);
    return fault === undefined ? [] : [{ pointer: '#/url', ...fault }];
  };

  return {
    get: (accountId, endpointId) => get(db, accountId, endpointId),

    async create({ settings, ...requester }) {
      const faults = [...filterFaults(settings), ...headerFaults(settings.headers)];
      faults.push(...(await urlFaults(settings.url)));
      if (faults.length > 0) return { kind: 'invalid', faults };
      const { accountId } = requester;
      const make = async (tx: Transaction<Tables>): Promise<EndpointCreated> => {
        await lockAccount(tx, accountId);
        const room = await findRoom(tx, accountId);
        if (room.kind !== 'ok') return room;
        const id = newId('whe');
        const challenge = newChallenge();
        const row = { id, account_id: accountId, challenge, ...rowOf(settings, seal, id) };
        await tx.insertInto('webhook_endpoints').values(row).execute();
        const secret = await insertSecret(tx, seal, { id, accountId });
        await keepTest(tx, { id, challenge });
        const detail = { origin: originOf(settings.url), event_types: settings.eventTypes };
        await audit(tx, { ...requester, endpointId: id }, 'webhook.created', detail);
        return { kind: 'ok', endpoint: (await get(tx, accountId, id))!, secret };
      };
      return inTurn(accountId, () => db.transaction().execute(make));
    },

    async list(accountId, { limit, after }) {
      const ranked = selectRanked(db, accountId).selectAll();
      const page =
        after === undefined ? ranked : ranked.where('rank', '>', rankOf(db, accountId, after));
      return (await page.orderBy('rank').limit(limit).execute()).map(listed);
    },

    async change({ settings, status, ...request }) {
      const { accountId, endpointId } = request;
      const before = await get(db, accountId, endpointId);
      if (before === undefined) return undefined;
      const isMoved = settings.url !== undefined && settings.url !== before.url;
      const faults = [...headerFaults(settings.headers ?? {})];
      faults.push(...(await urlFaults(isMoved ? settings.url : undefined)));
      if (faults.length > 0) return { kind: 'invalid', faults };
      return db.transaction().execute(async (tx): Promise<EndpointChanged | undefined> => {
        await lockAccount(tx, accountId);
        const now = await get(tx, accountId, endpointId);
        if (now === undefined) return undefined;
        const plan = planChange(now, settings, status);
        if (plan.kind !== 'ok') return plan;
        const waitS = plan.isTested ? tests.take(accountId) : 0;
        if (waitS > 0) return { kind: 'too_many_tests', retryAfterS: waitS };
        const challenge = newChallenge();
        await tx
          .updateTable('webhook_endpoints')
          .set({
            ...rowOf(settings, seal, endpointId),
            ...plan.set,
            ...(plan.isTested ? { challenge } : {}),
            updated_at: sql<Date>`now()`,
          })
          .where('id', '=', endpointId)
          .execute();
        if (plan.isTested) await keepTest(tx, { id: endpointId, challenge });
        if (plan.isWoken) await wakeAll(tx, endpointId);
        await audit(tx, request, 'webhook.changed', {
          changed: Object.keys(settings),
          ...(isMoved ? { origin: originOf(settings.url!) } : {}),
          ...(plan.set.status === undefined ? {} : { status: plan.set.status }),
        });
        return { kind: 'ok', endpoint: (await get(tx, accountId, endpointId))! };
      });
    },

    async remove(request) {
      const { accountId, endpointId } = request;
      if ((await get(db, accountId, endpointId)) === undefined) return undefined;
      await dropDeliveries(db, endpointId);
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, accountId);
        const before = await get(tx, accountId, endpointId);
        if (before === undefined) return undefined;
        await tx.deleteFrom('webhook_endpoints').where('id', '=', endpointId).execute();
        await audit(tx, request, 'webhook.deleted', { origin: originOf(before.url) });
        return before;
      });
    },

    rotate: ({ overlapS, ...request }) =>
      db.transaction().execute(async (tx) => {
        const { accountId, endpointId } = request;
        await lockAccount(tx, accountId);
        if ((await get(tx, accountId, endpointId)) === undefined) return undefined;
        const rotated = await rotateSecret(tx, seal, { id: endpointId, accountId, overlapS });
        if (rotated.kind === 'ok') {
          await audit(tx, request, 'webhook.secret_rotated', { overlap_s: overlapS });
        }
        return rotated;
      }),

    test: ({ accountId, endpointId }) =>
      db.transaction().execute(async (tx): Promise<TestSent | undefined> => {
        const row = await tx
          .selectFrom('webhook_endpoints')
          .select(['id', 'challenge'])
          .where('account_id', '=', accountId)
          .where('id', '=', endpointId)
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const waitS = tests.take(accountId);
        if (waitS > 0) return { kind: 'too_many_tests', retryAfterS: waitS };
        return { kind: 'ok', messageId: await keepTest(tx, row) };
      }),
  };
}

/** The account is locked: who comes after sees what this one has made. */
async function findRoom(
  tx: Transaction<Tables>,
  accountId: string,
): Promise<{ readonly kind: 'ok' } | Exclude<EndpointCreated, { kind: 'ok' }>> {
  const account = await readAccountAccess(tx, accountId);
  const tier = account === undefined ? undefined : tierOf(account, Date.now());
  if (tier === undefined || TIERS[tier].webhooks === 0) return { kind: 'not_entitled' };
  const { count } = await tx
    .selectFrom('webhook_endpoints')
    .select(sql<string>`count(*)`.as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  if (!hasPlace(Number(count), tier)) return { kind: 'limit', limit: TIERS[tier].webhooks! };
  const { made, left_s: leftS } = await tx
    .selectFrom('audit_log')
    .select(sql<string>`count(*)`.as('made'))
    .select(
      sql<number>`ceil(extract(epoch FROM min(at) + interval '1 hour' - now()))::int`.as('left_s'),
    )
    .where('account_id', '=', accountId)
    .where('action', '=', 'webhook.created')
    .where('at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirstOrThrow();
  if (Number(made) < ENDPOINT_LIMITS.madePerHourMax) return { kind: 'ok' };
  return { kind: 'too_many_made', retryAfterS: Math.max(1, leftS) };
}

function rankOf(db: Database, accountId: string, endpointId: string) {
  return selectRanked(db, accountId).select('rank').where('id', '=', endpointId);
}

/** What was put off while it was disabled is due at once. */
async function wakeAll(tx: Transaction<Tables>, endpointId: string): Promise<void> {
  await sql`UPDATE webhook_deliveries SET next_at = now()
    WHERE endpoint_id = ${endpointId} AND status = 'waiting' AND next_at > now()`.execute(tx);
  await wakeEndpoints(tx, [endpointId]);
}

/** 128 random bits: nobody's answer holds it by accident. */
function newChallenge(): string {
  return `whc_${randomBytes(16).toString('hex')}`;
}

function audit(
  tx: Transaction<Tables>,
  { accountId, endpointId, actor, address }: OwnedEndpoint,
  action: string,
  detail: object,
): Promise<void> {
  return writeAudit(tx, { accountId, actor, address, action, target: endpointId, detail });
}
