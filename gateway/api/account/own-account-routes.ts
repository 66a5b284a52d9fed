import { once } from 'node:events';
import { Readable } from 'node:stream';
import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { AccountAccess } from '../../../domain/access/account-access.ts';
import {
  accountEntitlement,
  boughtTierOf,
  entitlementOf,
  tierEndsAtMs,
} from '../../../domain/access/entitlement.ts';
import { suspensionOf } from '../../../domain/access/suspension.ts';
import { TIERS } from '../../../domain/access/tiers.ts';
import { closeAccount } from '../../../domain/accounts/account-closure.ts';
import { exportAccount } from '../../../domain/accounts/account-export.ts';
import { renameAccount } from '../../../domain/accounts/account-name.ts';
import { AUDIT_PAGE_MAX, readAudit } from '../../../domain/accounts/audit.ts';
import { readUsage, USAGE_LIMITS } from '../../../domain/accounts/usage.ts';
import { isDatabaseAway } from '../../../lib/postgres/database.ts';
import { answerOf, bodyOf, timeText } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import type { Dedicated } from '../manager/dedicated-sockets.ts';
import { ownAccount, signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { nextPage } from '../server/next-page.ts';
import { Before, limitOf, lineOf, Next, Password, STRICT } from '../server/schemas.ts';
import type { Accounts } from './account-deps.ts';
import {
  Account,
  AuditEntry,
  Usage,
  UsageHour,
  UsageOfKey,
  UsageToday,
} from './account-schemas.ts';
import { refuseSignIn } from './session-routes.ts';

const AuditPage = Type.Object({ data: Type.Array(AuditEntry), next: Next });

type OwnAccountDeps = Pick<Accounts, 'db' | 'users' | 'billing' | 'addresses' | 'dedicated'>;

/** The account itself: plan, limits, audit log, usage and closing. */
export function ownAccountRoutes(deps: OwnAccountDeps): RouteOptions[] {
  const { db, users, billing, addresses, dedicated } = deps;
  return [
    accountRoute({
      method: 'GET',
      url: '/api/account',
      tag: 'account',
      summary: 'Read plan, limits, and the addresses of all services',
      access: ownAccount('any', 'account:read'),
      answers: { 200: answerOf('The account.', Account) },
      async handle(request) {
        const { account } = callerOf(request);
        return {
          ...accountBody(account, addresses),
          dedicated: await dedicatedOf(account, dedicated),
        };
      },
    }),
    renameRoute(deps),
    accountRoute({
      method: 'DELETE',
      url: '/api/account',
      tag: 'account',
      summary: 'Close the account: keys and subscription end at once; data is erased after 30 days',
      access: withFreshFactor(signedIn('account:close')),
      body: Type.Object({ password: Password }, STRICT),
      bodyExample: { password: 'correct horse battery' },
      answers: { 204: { description: 'Closed.' } },
      problems: ['sign_in_refused', 'too_many_attempts'],
      ifUnknown: 'If the account was closed, GET /api/session answers 401.',
      async handle(request, reply) {
        const { userId } = callerOf(request).session!;
        const asked = await users.checkPassword(userId, request.body.password, request.ip);
        if (asked.kind !== 'ok') return refuseSignIn(reply, asked);
        await closeAccount({ db, billing }, requesterOf(request));
        return reply.code(204).send();
      },
    }),
    accountRoute({
      method: 'GET',
      url: '/api/account/audit',
      tag: 'account',
      summary: 'List who changed what, newest first',
      access: signedIn('audit:read'),
      query: Type.Object({ limit: limitOf(AUDIT_PAGE_MAX, 50), before: Before }, STRICT),
      answers: { 200: answerOf('One page.', AuditPage) },
      async handle(request) {
        const { limit = 50, before } = request.query;
        const entries = await readAudit(db, callerOf(request).account.id, { limit, before });
        const next =
          entries.length < limit ? null : nextPage(request.url, { before: entries.at(-1)!.id });
        return { data: entries.map((entry) => bodyOf(AuditEntry, entry)), next };
      },
    }),
    exportRoute(deps),
    usageRoute(deps),
  ];
}

function renameRoute({ db }: OwnAccountDeps): RouteOptions {
  return accountRoute({
    method: 'PATCH',
    url: '/api/account',
    tag: 'account',
    summary: 'Change the name of the account',
    access: signedIn('account:change'),
    body: Type.Object({ name: lineOf(100) }, STRICT),
    bodyExample: { name: 'Desk 4' },
    answers: { 204: { description: 'Changed; reads show it within a second.' } },
    async handle(request, reply) {
      await renameAccount(db, { ...requesterOf(request), name: request.body.name });
      return reply.code(204).send();
    },
  });
}

/** Longest time of an export: a client that reads too slowly gets no `end`. */
const EXPORT_MAX_MS = 60_000;

function exportRoute({ db }: OwnAccountDeps): RouteOptions {
  const running = new Set<string>();
  return accountRoute({
    method: 'GET',
    url: '/api/account/export',
    tag: 'account',
    summary: 'Read everything that is stored about the account, without secrets',
    description:
      'NDJSON: each line has a `kind`, such as `user`, `key`, `ticket`, `usage_day` or `audit`. The ' +
      'last line is `end` with the number of lines before it; without it the export was cut, ' +
      `which happens after ${EXPORT_MAX_MS / 1_000} s. One export of an account runs at a time.`,
    access: withFreshFactor(signedIn('account:export')),
    answers: {
      200: {
        description: 'The lines.',
        schema: Type.String(),
        type: 'application/x-ndjson',
        example:
          '{"kind":"account","id":"acc_k3m9x2p7q4ab","name":"Desk 4"}\n{"kind":"end","lines":1}\n',
      },
    },
    async handle(request, reply) {
      const { id } = callerOf(request).account;
      if (running.has(id)) return refuse(reply, 'overloaded', { retry_after_s: 1 });
      running.add(id);
      const lines = Readable.from(exportAccount(db, id));
      const timer = setTimeout(() => lines.destroy(), EXPORT_MAX_MS);
      lines.once('close', () => {
        clearTimeout(timer);
        running.delete(id);
      });
      // An unavailable database is still an answer of its own until the first line is there.
      await once(lines, 'readable');
      const name = `attachment; filename="${id}.ndjson"`;
      return reply.header('content-disposition', name).type('application/x-ndjson').send(lines);
    },
  });
}

function usageRoute({ db }: OwnAccountDeps): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/usage',
    tag: 'account',
    summary: 'Count calls by day, key and endpoint, with a projection for today',
    access: ownAccount('read', 'account:read'),
    query: Type.Object({ days: limitOf(USAGE_LIMITS.daysMax, 30) }, STRICT),
    answers: { 200: answerOf('The usage.', Usage) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const { days = 30 } = request.query;
      const usage = await readUsage(db, callerOf(request).account.id, { days });
      if (usage === undefined) return refuse(reply, 'object_not_found');
      return {
        today: bodyOf(UsageToday, usage.today),
        by_day: usage.days,
        by_key: usage.keys.map((key) => bodyOf(UsageOfKey, key)),
        by_endpoint: usage.endpoints,
        by_hour: usage.hours.map((hour) => bodyOf(UsageHour, hour)),
      };
    },
  });
}

function accountBody(account: AccountAccess, addresses: Accounts['addresses']) {
  const entitlement = accountEntitlement(account, Date.now());
  const tier = entitlement.kind === 'granted' ? entitlement.tier : undefined;
  const plan = tier === undefined ? undefined : TIERS[tier];
  const endsAtMs = tierEndsAtMs(account);
  const { subscription } = account;
  return {
    id: account.id,
    name: account.name,
    status: account.status,
    suspended_reason: account.suspendedReason ?? null,
    suspension: entitlement.kind === 'account_suspended' ? suspensionOf(account) : null,
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
    support: TIERS[boughtTierOf(account, Date.now()) ?? 'basic'].support,
    services: {
      api: addresses.api,
      ingest: addresses.ingest,
      stream: `${addresses.stream}/api/stream`,
      docs: `${addresses.api}/docs`,
    },
  };
}

/** @returns null while the database is unavailable, which the rest of the answer does not need */
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
  return ms === undefined ? null : timeText(new Date(ms));
}
