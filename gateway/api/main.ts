import { createKeyUse } from '../../domain/access/key-use.ts';
import { openKeyring } from '../../domain/access/keyring.ts';
import { openMeter } from '../../domain/access/meter.ts';
import { startPepperHolder } from '../../domain/access/pepper-holders.ts';
import { createSeal } from '../../domain/access/sealing.ts';
import { startSecurityLog } from '../../domain/accounts/security-log.ts';
import { openAuthenticator } from '../../domain/authentication/open-authenticator.ts';
import { createSchemes } from '../../domain/authentication/schemes.ts';
import { createDesks } from '../../domain/desks/desks.ts';
import { openOverridesFile } from '../../domain/market/calendars/overrides-file.ts';
import { createVenueOf } from '../../domain/market/calendars/venue-rules.ts';
import { openMarkets } from '../../domain/market/quiet/open-markets.ts';
import { startAvailabilityLog } from '../../domain/service/availability-log.ts';
import { readServiceHistory, type ServiceHistory } from '../../domain/service/service-days.ts';
import { openContext } from '../../lib/kafka/log-context.ts';
import { fetchOldest } from '../../lib/kafka/oldest.ts';
import { openMailer } from '../../lib/mail/mailer.ts';
import { ANSWER_TIMEOUTS, type Database, openDatabase } from '../../lib/postgres/database.ts';
import { pendingMigrations } from '../../lib/postgres/migrate.ts';
import { type Lifecycle, runProcess } from '../../lib/run/run-process.ts';
import { retryForever } from '../../lib/timing/backoff.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { openCredentials } from '../http/generator-credentials.ts';
import { openAccounts } from './account/account-deps.ts';
import { accountRoutes } from './account/routes.ts';
import { openAnalytics } from './analytics/open-analytics.ts';
import { openLogEnd } from './clickhouse/log-end.ts';
import { type ApiConfig, readApiConfig } from './config.ts';
import { demoReads } from './console/demo-reads.ts';
import { demoTicketRoute } from './console/demo-ticket-route.ts';
import { marketRoute } from './console/market-route.ts';
import { addPageRoutes } from './console/page-routes.ts';
import { openDestinations } from './destinations/destination-deps.ts';
import { destinationRoutes } from './destinations/routes.ts';
import { openExports } from './exports/open-exports.ts';
import { watchGenerators } from './generator/alerts.ts';
import { generatorRoutes, openOutcomes } from './generator/routes.ts';
import { openHistory } from './history/open-history.ts';
import { NOTICES_REFRESH_MS, OLDEST_REFRESH_MS, SERVICE_HISTORY_REFRESH_MS } from './limits.ts';
import { authenticationRoutes } from './manager/authentication-routes.ts';
import { checkRoutes } from './manager/check-routes.ts';
import { openDedicated } from './manager/dedicated-sockets.ts';
import { deskRoutes } from './manager/desk-routes.ts';
import { invitationRoutes } from './manager/invitation-routes.ts';
import { memberRoutes } from './manager/member-routes.ts';
import { dedicatedSocketRoutes } from './manager/stream-routes.ts';
import { watchLatestLag } from './pills/latest-lag.ts';
import { latestRoute } from './pills/latest-route.ts';
import { openLatestView } from './pills/latest-view.ts';
import { createApiApp } from './server/app.ts';
import type { Generators } from './server/generators.ts';
import { createFindUnknown } from './server/known-symbols.ts';
import { problemRoutes } from './server/problem-routes.ts';
import { healthRoutes } from './status/health-routes.ts';
import { securityTxtRoutes } from './status/security-txt-route.ts';
import { createServiceState } from './status/service-state.ts';
import { statusDaysRoute } from './status/status-days-route.ts';
import { readStatusNotices, type StatusNotices } from './status/status-notices.ts';
import { statusRoute } from './status/status-route.ts';
import { openVerify } from './verify/open-verify.ts';
import { watchValue } from './watch-value.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import { openWebhooks } from './webhooks/webhook-deps.ts';

const START_BACKOFF = { firstMs: 200, maxMs: 3_000 };

await runProcess('api', readApiConfig, buildApi);

/** Opens access first, then the sources of reads, and listens last. Stops in the reverse order. */
async function buildApi(config: ApiConfig, life: Lifecycle): Promise<void> {
  const access = openAccess(config, life);
  const reads = await openReads(config, access, life);
  const app = await openApp(config, access, reads, life);
  await app.listen({ host: config.host, port: config.port });
  life.onStop('http server', async () => {
    await app.close();
  });
  life.log.info({ address: app.listeningOrigin }, 'listening');
}

/** Opens the parts that need PostgreSQL only: who the caller is, and what the caller may do. */
function openAccess(config: ApiConfig, life: Lifecycle) {
  const { log } = life;
  const { namespace, databaseUrl, pepper } = config;
  const postgres = { databaseUrl, namespace, log, name: 'api' };
  const keyring = openKeyring({ ...postgres, pepper });
  life.onStop('keyring', keyring.close);
  const meter = openMeter(postgres);
  life.onStop('meter', meter.close);
  const database = { url: databaseUrl, namespace, log };
  const db = openDatabase({ ...database, name: 'api', timeouts: ANSWER_TIMEOUTS });
  life.onStop('database', () => db.destroy());
  // Background work may be slow, and takes no connection from requests.
  const background = openDatabase({ ...database, name: 'api-background', connectionsMax: 4 });
  life.onStop('background database', () => background.destroy());
  waitForTables(background, life);
  const security = startSecurityLog({ db: background, process: 'api', log });
  life.onStop('security log', security.close);
  const holder = startPepperHolder({ db: background, pepper, kind: 'api', log });
  life.onStop('record of the pepper', holder.close);
  const keyUse = createKeyUse({ db: background, log });
  life.onStop('key use', keyUse.close);
  const dedicated = openDedicated(db, config.dedicated);
  const accounts = openAccounts({ db, background, pepper, dedicated, config, log });
  life.onStop('accounts', accounts.close);
  const authenticator = openAuthenticator({ keyring, pepper, egress: config.egress, log });
  const schemes = createSchemes({ db, seal: createSeal(pepper) });
  const access = { keyring, authenticator, schemes, meter, keyUse };
  return { ...access, db, background, dedicated, accounts };
}

/** Opens the parts that read pills: the latest view, history, analytics, verify, webhooks. */
async function openReads(
  config: ApiConfig,
  { keyring, db, background }: ReturnType<typeof openAccess>,
  life: Lifecycle,
) {
  const { namespace, pepper } = config;
  const { client, schemas, settings } = await openContext('api', config, life);
  const { epoch } = settings;
  const view = await retry('the latest topic cannot be read', life, () =>
    openLatestView({ client, schemas, settings, namespace }, life),
  );
  life.readyWhen(() => (view.isReady() ? undefined : 'reading the latest topic'));
  const pills = topicName(namespace, 'pills');
  const lag = watchLatestLag(client, pills, view.processed, life);
  const state = createServiceState({
    view,
    lag,
    accounts: () => (keyring.isFresh() ? 'up' : 'down'),
  });
  const { failing } = state;
  const availability = startAvailabilityLog({ db: background, failing, log: life.log });
  life.onStop('availability', availability.close);
  const status = statusRoute({
    view,
    epoch,
    state,
    // The oldest time changes only if retention cuts the log, or the first pill arrives.
    oldest: watchValue<Micros | undefined>(life, 'oldest pill', OLDEST_REFRESH_MS, undefined, () =>
      fetchOldest(client, pills),
    ),
    notices: watchValue<StatusNotices>(life, 'notices', NOTICES_REFRESH_MS, [], () =>
      readStatusNotices(background),
    ),
  });
  const statusDays = statusDaysRoute(
    watchValue<ServiceHistory | undefined>(
      life,
      'service history',
      SERVICE_HISTORY_REFRESH_MS,
      undefined,
      () => readServiceHistory(background),
    ),
  );
  const logEnd = openLogEnd(client, pills, life);
  const overrides = openOverridesFile(config.calendarOverrides, life.log);
  const markets = openMarkets(overrides, createVenueOf(config.venueRules), life);
  const findUnknown = createFindUnknown(view);
  const analytics = openAnalytics({ config, settings, logEnd, markets, findUnknown }, life);
  const { history, route } = openHistory({ config, settings, logEnd, pepper, findUnknown }, life);
  const exports = openExports({ config, db, background, keyring, pepper, epoch }, life);
  const webhooks = openWebhooks(config, { db, pepper, history, epoch }, life);
  const { egress } = config;
  const { partitions } = settings;
  const destinations = openDestinations({
    ...{ db, pepper, egress, view, readLogEnd: logEnd, epoch, partitions },
  });
  const verify = await retry('the log cannot be read', life, () =>
    openVerify({ config, client, schemas, settings, view, lag, markets }, life),
  );
  const outcomes = openOutcomes(config, life);
  startAlerts(config, { view, markets, select: outcomes, db: background }, life);
  const { routes: verdicts, lastSpreads } = verify;
  const ofPills = [latestRoute(view, logEnd, epoch), route, ...analytics, ...verdicts];
  const routes = [
    ...[...ofPills, ...exports, status, statusDays],
    ...[...destinationRoutes(destinations), ...generatorRoutes(config, outcomes)],
  ];
  return { view, webhooks, routes, market: { lastSpreads, markets } };
}

/** Creates the HTTP server with the guard and all routes. */
function openApp(
  config: ApiConfig,
  access: ReturnType<typeof openAccess>,
  { view, webhooks, routes, market }: Awaited<ReturnType<typeof openReads>>,
  life: Lifecycle,
) {
  const { log } = life;
  const { demoAccountId: accountId, addresses, trustedProxies, origins, isLocal } = config;
  const { keyring, meter, keyUse, authenticator, schemes, db, dedicated, accounts } = access;
  const publicUrl = addresses.api;
  return createApiApp({
    keyring,
    meter,
    keyUse,
    authenticator,
    findSession: accounts.findSession,
    generators: openGenerators(config, life),
    log,
    trustedProxies,
    origins,
    isLocal,
    publicUrl,
    ingestUrl: addresses.ingest,
    streamUrls: { stream: addresses.stream, dedicated: config.dedicated.url },
    addRoutes(to) {
      const all = [
        ...routes,
        ...problemRoutes(),
        ...healthRoutes(view.isReady),
        ...securityTxtRoutes(config.securityContact, addresses.api),
        ...accountRoutes(accounts),
        ...memberRoutes(accounts),
        ...invitationRoutes(accounts),
        ...deskRoutes(createDesks(db)),
        ...dedicatedSocketRoutes(dedicated),
        ...authenticationRoutes({ schemes, policy: config.egress.policy }),
        ...checkRoutes({ authenticator, schemes, publicUrl }),
        ...webhookRoutes(webhooks),
        marketRoute({ ...market, hasDemo: accountId !== undefined }),
        ...(accountId === undefined
          ? []
          : [demoTicketRoute(db, accountId), ...demoReads(routes, keyring, accountId)]),
      ];
      for (const route of all) to.route(route);
      const page = { streamUrl: addresses.stream, hasDemo: accountId !== undefined };
      addPageRoutes(to, { ...page, cookie: accounts.cookie, log });
    },
  });
}

/** Watches the generators, and alerts the operator about them if the settings say how. */
function startAlerts(
  { alerts: settings, mail, namespace }: ApiConfig,
  of: Pick<Parameters<typeof watchGenerators>[0], 'view' | 'markets' | 'select' | 'db'>,
  life: Lifecycle,
): void {
  const mailer = openMailer(mail);
  life.onStop('mailer of alerts', mailer.close);
  const watch = watchGenerators({ ...of, settings, namespace, mailer, log: life.log });
  life.onStop('alerts', watch.close);
}

/** Follows the credentials of ingest, so that its tokens and their ends are valid here as well. */
function openGenerators({ credentialsFile, isLocal }: ApiConfig, life: Lifecycle): Generators {
  if (credentialsFile === undefined) return isLocal ? 'open' : 'unknown';
  const credentials = openCredentials(credentialsFile, life.log);
  life.onStop('generator credentials', () => credentials.close());
  return credentials;
}

/** Retries until `open` succeeds. */
function retry<T>(problem: string, { log, signal }: Lifecycle, open: () => Promise<T>): Promise<T> {
  return retryForever(open, {
    ...START_BACKOFF,
    signal,
    onError: (error, attempts) => log.warn({ err: error, attempts }, problem),
  });
}

/**
 * Waits in the background until the tables are there, since `npm run provision` makes them: the
 * process starts while PostgreSQL is away, so that its status can be read.
 */
function waitForTables(db: Database, life: Lifecycle): void {
  let missing: string | undefined = 'waiting for the accounts database';
  life.readyWhen(() => missing);
  retry('the accounts tables are not up to date', life, async () => {
    const [first] = await pendingMigrations(db);
    if (first === undefined) return;
    missing = `the tables lack ${first}: run "npm run provision"`;
    throw new Error(missing);
  }).then(() => {
    missing = undefined;
  }, life.fail);
}
