import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import type { AccountAccess } from '../../../lib/access/access.ts';
import { entitlementOf, tierEndsAtMs, tierOf } from '../../../lib/access/entitlement.ts';
import { TIERS } from '../../../lib/access/tiers.ts';
import { AUDIT_PAGE_MAX, readAudit } from '../../../lib/accounts/audit.ts';
import { closeAccount } from '../../../lib/accounts/close-account.ts';
import { readUsage, USAGE_LIMITS } from '../../../lib/accounts/usage.ts';
import { isDatabaseAway } from '../../../lib/postgres/database.ts';
import { refuse } from '../../http/refuse.ts';
import { OWN_ACCOUNT, SIGNED_IN } from '../access-rule.ts';
import { actorOf, callerOf } from '../caller.ts';
import type { Dedicated } from '../manager/dedicated.ts';
import { accountEndpoint } from './account-endpoint.ts';
import {
  ACCOUNT_EXAMPLE,
  Account,
  AUDIT_EXAMPLE,
  AuditPage,
  USAGE_EXAMPLE,
  Usage,
} from './account-schemas.ts';
import type { Accounts } from './accounts.ts';
import { Password, STRICT } from './schemas.ts';

/** The account itself: plan, limits, use, what was done, its end. */
export function addOwnAccountRoutes(
  app: FastifyInstance,
  {
    db,
    users,
    billing,
    addresses,
    dedicated,
  }: Pick<Accounts, 'db' | 'users' | 'billing' | 'addresses' | 'dedicated'>,
): void {
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/account',
      tag: 'account',
      summary: 'Plan, limits, and the addresses of all services',
      access: OWN_ACCOUNT,
      answers: {
        200: { description: 'The account.', schema: Account, example: ACCOUNT_EXAMPLE },
      },
      async handle(request) {
        const { account } = callerOf(request);
        return {
          ...accountBody(account, addresses),
          dedicated: await dedicatedOf(account, dedicated),
        };
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'DELETE',
      url: '/api/account',
      tag: 'account',
      summary:
        'Close the account: keys and subscription end at once, its data is erased 30 days later',
      access: SIGNED_IN,
      body: Type.Object({ password: Password }, STRICT),
      bodyExample: { password: 'correct horse battery' },
      answers: { 204: { description: 'Closed.' } },
      problems: ['sign_in_refused', 'too_many_attempts'],
      ifUnknown: 'GET /api/session answers 401 when it was closed.',
      async handle(request, reply) {
        const caller = callerOf(request);
        const { userId } = caller.session!;
        const asked = await users.checkPassword(userId, request.body.password, request.ip);
        if (asked.kind === 'refused') return refuse(reply, 'sign_in_refused');
        if (asked.kind === 'limited') {
          return refuse(reply, 'too_many_attempts', { retry_after_s: asked.retryAfterS });
        }
        const accountId = caller.account.id;
        await closeAccount(
          { db, billing },
          { accountId, actor: actorOf(caller), address: request.ip },
        );
        return reply.code(204).send();
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/account/audit',
      tag: 'account',
      summary: 'Who changed what, newest first',
      access: SIGNED_IN,
      query: Type.Object(
        {
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: AUDIT_PAGE_MAX, default: 50 })),
          before: Type.Optional(
            Type.String({ pattern: '^\\d{1,18}$', description: '`next` of the page before' }),
          ),
        },
        STRICT,
      ),
      answers: { 200: { description: 'One page.', schema: AuditPage, example: AUDIT_EXAMPLE } },
      async handle(request) {
        const { limit = 50, before } = request.query;
        const entries = await readAudit(db, callerOf(request).account.id, { limit, before });
        const data = entries.map(({ at, actor, action, target, address, detail }) => ({
          ...{ at: at.toISOString(), actor, action, target, address, detail },
        }));
        return { data, next: entries.length < limit ? null : entries.at(-1)!.id };
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/usage',
      tag: 'account',
      summary: 'Calls by day, key and endpoint, and where today is heading',
      access: OWN_ACCOUNT,
      query: Type.Object(
        {
          days: Type.Optional(
            Type.Integer({ minimum: 1, maximum: USAGE_LIMITS.daysMax, default: 30 }),
          ),
        },
        STRICT,
      ),
      answers: { 200: { description: 'The use.', schema: Usage, example: USAGE_EXAMPLE } },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { days = 30 } = request.query;
        const usage = await readUsage(db, callerOf(request).account.id, { days });
        if (usage === undefined) return refuse(reply, 'object_not_found');
        const { today } = usage;
        return {
          today: {
            day: today.day,
            used: today.used,
            limit: today.limit,
            remaining: today.remaining,
            resets_at: today.resetsAt.toISOString(),
            projected: today.projected,
          },
          by_day: usage.days,
          by_key: usage.keys.map(({ keyId, name, hint, calls }) => ({
            ...{ key_id: keyId, name, hint, calls },
          })),
          by_endpoint: usage.endpoints,
        };
      },
    }),
  );
}

function accountBody(account: AccountAccess, addresses: Accounts['addresses']) {
  const tier = tierOf(account, Date.now());
  const plan = tier === undefined ? undefined : TIERS[tier];
  const endsAtMs = tierEndsAtMs(account);
  const { subscription } = account;
  return {
    id: account.id,
    name: account.name,
    status: account.status,
    suspended_reason: account.suspendedReason ?? null,
    tier: tier ?? null,
    plan: plan?.title ?? null,
    subscription: subscription?.status ?? null,
    period_end: isoOf(subscription?.periodEndMs),
    access_ends_at: isoOf(endsAtMs),
    limits: {
      calls_per_day: plan === undefined ? 0 : (account.callsPerDay ?? plan.callsPerDay),
      rate_per_s: plan === undefined ? 0 : (account.ratePerS ?? plan.ratePerS),
      burst: plan === undefined ? 0 : (account.rateBurst ?? plan.rateBurst),
      stream_connections: plan?.streamConnections ?? 0,
      stream_symbols: plan?.streamSymbols ?? 0,
      webhooks: plan === undefined ? 0 : plan.webhooks,
    },
    capabilities: plan?.capabilities ?? [],
    support: plan?.support ?? 'e-mail',
    services: {
      api: addresses.api,
      ingest: addresses.ingest,
      stream: `${addresses.stream}/api/stream`,
      docs: `${addresses.api}/docs`,
    },
  };
}

/** The account is known without the database; then so is the rest of the answer. */
async function dedicatedOf(account: AccountAccess, dedicated: Dedicated) {
  if (entitlementOf(account, 'dedicated_stream', Date.now()).kind !== 'granted') return [];
  try {
    const streams = await dedicated.list(account.id);
    return streams.map((one) => ({ name: one.name, url: dedicated.urlOf(one), state: one.state }));
  } catch (error) {
    if (isDatabaseAway(error)) return null;
    throw error;
  }
}

function isoOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
