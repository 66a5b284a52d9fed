import { randomBytes } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../../lib/postgres/database.ts';
import { inTurn, takeTurn } from '../../../lib/postgres/in-turn.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import { createKeyedCounter, type WindowLimit } from '../../../lib/rate/window-counter.ts';
import { tierOf } from '../../access/entitlement.ts';
import { newId } from '../../access/id.ts';
import type { Seal } from '../../access/sealing.ts';
import { TIERS } from '../../access/tiers.ts';
import { raiseSecurityEvent } from '../../accounts/account-alerts.ts';
import { lockAccount, readAccountAccess } from '../../accounts/account-row.ts';
import { type Requester, writeAudit } from '../../accounts/audit.ts';
import { wakeEndpoints } from '../deliveries/drain-jobs.ts';
import { dropDeliveries, messageTurn, storeTestMessage } from '../deliveries/stored-messages.ts';
import { insertSecret, type Rotated, rotateSecret } from '../secrets/rotation.ts';
import { planChange } from './endpoint-change.ts';
import { type EndpointFault, filterFaults, headerFaults } from './endpoint-check.ts';
import { type EndpointRow, endpointOf, openHeaders, selectRanked } from './endpoint-row.ts';
import { type EndpointSettings, rowOf } from './endpoint-settings.ts';
import { isWithinLimit } from './endpoint-state.ts';
import { originOf } from './origin.ts';
import type { WebhookEndpoint } from './webhook-endpoint.ts';

export const ENDPOINT_LIMITS = {
  /** Endpoints that an account creates within an hour, including those deleted since. */
  madePerHourMax: 60,
  pageMax: 200,
  pageDefault: 100,
} as const;

/** Test sends of an account at one process, including those after a change of the URL. */
export const TEST_LIMIT: WindowLimit = { max: 10, windowMs: 60_000 };

export interface OwnedEndpoint extends Requester {
  readonly accountId: string;
  readonly endpointId: string;
}

export interface EndpointChange extends OwnedEndpoint {
  readonly settings: Partial<EndpointSettings>;
  readonly status?: 'enabled' | 'disabled' | undefined;
  /** Whether stored headers may be sent to another origin. */
  readonly mayMoveHeaders: boolean;
}

/** An endpoint as its owner sees it. */
export interface ListedEndpoint extends WebhookEndpoint {
  /** Names of its custom headers; the values are not shown again. */
  readonly headerNames: readonly string[];
  /** How many endpoints of the account are older. */
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
  /** The tier has just changed. */
  | { readonly kind: 'not_entitled' }
  | Invalid
  | Wait;

export type EndpointChanged =
  | { readonly kind: 'ok'; readonly endpoint: ListedEndpoint }
  /** Why the endpoint’s state does not allow the change. */
  | { readonly kind: 'conflict'; readonly detail: string }
  | Invalid
  | Wait;

type TestSent = { readonly kind: 'ok'; readonly messageId: string } | Wait;

export type Endpoints = ReturnType<typeof createEndpoints>;

interface EndpointsDeps {
  readonly db: Database;
  readonly seal: Seal;
  /** Checks the form of a URL and the addresses that its name resolves to now. */
  readonly checkUrl: (url: string) => Promise<Omit<EndpointFault, 'pointer'> | undefined>;
}

/**
 * Webhook endpoints of accounts. An endpoint of another account counts as absent: undefined. Every
 * change is in the audit log; a trigger of the tables notifies the dispatchers.
 */
export function createEndpoints(deps: EndpointsDeps) {
  const { db, seal } = deps;
  const tests = createKeyedCounter(TEST_LIMIT);
  return {
    get: (accountId: string, endpointId: string) => getEndpoint(db, seal, accountId, endpointId),

    async create({
      settings,
      ...requester
    }: Requester & {
      accountId: string;
      settings: EndpointSettings;
    }): Promise<EndpointCreated> {
      const faults = [...filterFaults(settings), ...headerFaults(settings.headers)];
      faults.push(...(await urlFaults(deps, settings.url)));
      if (faults.length > 0) return { kind: 'invalid', faults };
      return inTurn(db, requester.accountId, (tx) => createEndpoint(tx, seal, requester, settings));
    },

    /** Oldest first. @param page `after` is the id of the last one of the page before */
    async list(
      accountId: string,
      { limit, after }: { readonly limit: number; readonly after?: string | undefined },
    ): Promise<readonly ListedEndpoint[]> {
      let page = selectRanked(db, accountId).selectAll();
      if (after !== undefined) {
        const last = selectRanked(db, accountId).select('rank').where('id', '=', after);
        page = page.where('rank', '>', last);
      }
      const rows = await page.orderBy('rank').limit(limit).execute();
      return rows.map((row) => listedOf(row, seal));
    },

    async change(change: EndpointChange): Promise<EndpointChanged | undefined> {
      const { accountId, endpointId, settings } = change;
      const before = await getEndpoint(db, seal, accountId, endpointId);
      if (before === undefined) return undefined;
      const isMoved = settings.url !== undefined && settings.url !== before.url;
      const faults = [...headerFaults(settings.headers ?? {})];
      faults.push(...(await urlFaults(deps, isMoved ? settings.url : undefined)));
      if (faults.length > 0) return { kind: 'invalid', faults };
      return inTurn(db, accountId, (tx) => changeEndpoint(tx, seal, change, isMoved, tests.take));
    },

    async remove(request: OwnedEndpoint): Promise<ListedEndpoint | undefined> {
      const { accountId, endpointId } = request;
      if ((await getEndpoint(db, seal, accountId, endpointId)) === undefined) return undefined;
      await takeTurn(db, messageTurn(accountId), () => dropDeliveries(db, endpointId));
      return inTurn(db, accountId, async (tx) => {
        await lockAccount(tx, accountId);
        const before = await getEndpoint(tx, seal, accountId, endpointId);
        if (before === undefined) return undefined;
        await tx.deleteFrom('webhook_endpoints').where('id', '=', endpointId).execute();
        await audit(tx, request, 'webhook.deleted', { origin: originOf(before.url) });
        return before;
      });
    },

    rotate: ({
      overlapS,
      ...request
    }: OwnedEndpoint & { readonly overlapS: number }): Promise<Rotated | undefined> =>
      inTurn(db, request.accountId, async (tx) => {
        const { accountId, endpointId } = request;
        await lockAccount(tx, accountId);
        const endpoint = await getEndpoint(tx, seal, accountId, endpointId);
        if (endpoint === undefined) return undefined;
        const rotated = await rotateSecret(tx, seal, { id: endpointId, accountId, overlapS });
        if (rotated.kind === 'ok') {
          await audit(tx, request, 'webhook.secret_rotated', { overlap_s: overlapS });
        }
        return rotated;
      }),

    /** Posts an `endpoint.test`. */
    test: ({ accountId, endpointId }: OwnedEndpoint) =>
      inTurn(db, accountId, async (tx): Promise<TestSent | undefined> => {
        const row = await tx
          .selectFrom('webhook_endpoints')
          .select(['id', 'challenge'])
          .where('account_id', '=', accountId)
          .where('id', '=', endpointId)
          .executeTakeFirst();
        if (row === undefined) return undefined;
        const waitS = tests.take(accountId);
        if (waitS > 0) return { kind: 'too_many_tests', retryAfterS: waitS };
        return { kind: 'ok', messageId: await storeTestMessage(tx, row) };
      }),
  };
}

async function getEndpoint(on: Database, seal: Seal, accountId: string, endpointId: string) {
  const row = await selectRanked(on, accountId)
    .selectAll()
    .where('id', '=', endpointId)
    .executeTakeFirst();
  return row === undefined ? undefined : listedOf(row, seal);
}

function listedOf(row: EndpointRow & { readonly rank: string }, seal: Seal): ListedEndpoint {
  const headerNames = Object.keys(openHeaders(seal, row));
  return { ...endpointOf(row), headerNames, rank: Number(row.rank) };
}

async function urlFaults({ checkUrl }: EndpointsDeps, url: string | undefined) {
  const fault = url === undefined ? undefined : await checkUrl(url);
  return fault === undefined ? [] : [{ pointer: '#/url', ...fault }];
}

async function createEndpoint(
  tx: Transaction<Tables>,
  seal: Seal,
  requester: Requester & { readonly accountId: string },
  settings: EndpointSettings,
): Promise<EndpointCreated> {
  const { accountId } = requester;
  await lockAccount(tx, accountId);
  const refusal = await refusalOf(tx, accountId);
  if (refusal !== undefined) return refusal;
  const id = newId('whe');
  const challenge = newChallenge();
  const row = { id, account_id: accountId, challenge, ...rowOf(settings, seal, id) };
  await tx.insertInto('webhook_endpoints').values(row).execute();
  const secret = await insertSecret(tx, seal, { id, accountId });
  await storeTestMessage(tx, { id, challenge });
  const detail = { origin: originOf(settings.url), event_types: settings.eventTypes };
  await audit(tx, { ...requester, endpointId: id }, 'webhook.created', detail);
  await raiseNewTarget(tx, { ...requester, endpointId: id }, settings.url, 'webhook.created');
  return { kind: 'ok', endpoint: (await getEndpoint(tx, seal, accountId, id))!, secret };
}

/** @param isMoved to another URL @param takeTest seconds to wait for a test send; 0 = none */
async function changeEndpoint(
  tx: Transaction<Tables>,
  seal: Seal,
  { settings, status, mayMoveHeaders, ...request }: EndpointChange,
  isMoved: boolean,
  takeTest: (accountId: string) => number,
): Promise<EndpointChanged | undefined> {
  const { accountId, endpointId } = request;
  await lockAccount(tx, accountId);
  const now = await getEndpoint(tx, seal, accountId, endpointId);
  if (now === undefined) return undefined;
  const plan = planChange(now, settings, { status, mayMoveHeaders });
  if (plan.kind !== 'ok') return plan;
  const waitS = plan.isTested ? takeTest(accountId) : 0;
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
  if (plan.isTested) await storeTestMessage(tx, { id: endpointId, challenge });
  if (plan.isWoken) {
    // Messages postponed while the endpoint was disabled are due at once.
    await sql`UPDATE webhook_deliveries SET next_at = now()
      WHERE endpoint_id = ${endpointId} AND status = 'waiting' AND next_at > now()`.execute(tx);
    await wakeEndpoints(tx, [endpointId]);
  }
  if (isMoved) await raiseNewTarget(tx, request, settings.url!, 'webhook.moved');
  await audit(tx, request, 'webhook.changed', {
    changed: Object.keys(settings),
    ...(isMoved ? { origin: originOf(settings.url!) } : {}),
    ...(plan.set.status === undefined ? {} : { status: plan.set.status }),
  });
  return { kind: 'ok', endpoint: (await getEndpoint(tx, seal, accountId, endpointId))! };
}

/** Mails the owner that messages go to another URL; at most once an hour for an endpoint. */
function raiseNewTarget(
  tx: Transaction<Tables>,
  { accountId, endpointId, actor, address }: OwnedEndpoint,
  url: string,
  type: 'webhook.created' | 'webhook.moved',
): Promise<void> {
  const hour = new Date().toISOString().slice(0, 13);
  return raiseSecurityEvent(tx, accountId, {
    type,
    occurrence: `${endpointId}/${hour}`,
    data: { endpoint: endpointId, origin: originOf(url), by: actor, address },
  });
}

/** @returns why no endpoint can be created; the account is locked, so concurrent requests wait */
async function refusalOf(
  tx: Transaction<Tables>,
  accountId: string,
): Promise<Exclude<EndpointCreated, { kind: 'ok' }> | undefined> {
  const account = await readAccountAccess(tx, accountId);
  const tier = account === undefined ? undefined : tierOf(account, Date.now());
  if (tier === undefined || TIERS[tier].webhooks === 0) return { kind: 'not_entitled' };
  const { count } = await tx
    .selectFrom('webhook_endpoints')
    .select(sql<string>`count(*)`.as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  if (!isWithinLimit(Number(count), tier)) return { kind: 'limit', limit: TIERS[tier].webhooks! };
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
  if (Number(made) < ENDPOINT_LIMITS.madePerHourMax) return undefined;
  return { kind: 'too_many_made', retryAfterS: Math.max(1, leftS) };
}

/** 128 random bits: no answer contains the challenge by accident. */
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
