import { createKeyUse } from '../../lib/access/key-use.ts';
import { openKeyring } from '../../lib/access/keyring.ts';
import { openMeter } from '../../lib/access/meter.ts';
import { readPepper } from '../../lib/access/pepper.ts';
import { retryForever } from '../../lib/backoff.ts';
import { checkOverridesFile } from '../../lib/calendar/overrides-file.ts';
import { openContext } from '../../lib/context.ts';
import { ANSWER_TIMEOUTS, openDatabase } from '../../lib/postgres/database.ts';
import { migrate } from '../../lib/postgres/migrate.ts';
import { type Life, runProcess } from '../../lib/run.ts';
import { migrateQueue } from '../../lib/webhooks/queue.ts';
import { topicName } from '../../schemas/topics.ts';
import { openAccounts } from './account/accounts.ts';
import { addAccountRoutes } from './account/routes.ts';
import { openAnalytics } from './analytics/open-analytics.ts';
import { createApiApp } from './app.ts';
import { type ApiConfig, readApiConfig } from './config.ts';
import { addDemoTicketRoute } from './console/demo-ticket-route.ts';
import { addPageRoutes } from './console/page-routes.ts';
import { addHealthRoutes } from './health-routes.ts';
import { openHistory } from './history/open-history.ts';
import { latestEndpoint } from './latest-route.ts';
import { openLogEnd } from './log-end.ts';
import { watchNotices } from './notices.ts';
import { watchOldest } from './oldest.ts';
import { addProblemRoutes } from './problem-routes.ts';
import { watchProgress } from './progress.ts';
import { createSessionFinder } from './session-cookie.ts';
import { statusEndpoint } from './status-route.ts';
import { openVerify } from './verify/open-verify.ts';
import { openLatestView } from './view.ts';
import { addWebhookRoutes } from './webhooks/routes.ts';
import { openWebhooks } from './webhooks/webhooks.ts';

const START_BACKOFF = { firstMs: 200, maxMs: 3_000 };

await runProcess(
  'api',
  () => {
    const config = readApiConfig(process.env);
    checkOverridesFile(config.calendarOverrides);
    return { ...config, pepper: readPepper(config.pepperPath) };
  },
  buildApi,
);

/** Access first, then what is read; listens when both are open. Stops in the reverse order. */
async function buildApi(config: ApiConfig & { pepper: Buffer }, life: Life): Promise<void> {
  const { log, signal } = life;
  const { namespace, databaseUrl, pepper } = config;
  const postgres = { databaseUrl, namespace, log, name: 'api' };
  migrateSoon(config, life);
  const keyring = openKeyring({ ...postgres, pepper });
  life.onStop('keyring', keyring.close);
  const meter = openMeter(postgres);
  life.onStop('meter', meter.close);
  const database = { url: databaseUrl, namespace, log };
  const db = openDatabase({ ...database, name: 'api', timeouts: ANSWER_TIMEOUTS });
  life.onStop('database', () => db.destroy());
  // What is done beside requests may take its time, and takes no connection from them.
  const background = openDatabase({ ...database, name: 'api-background', connectionsMax: 4 });
  life.onStop('background database', () => background.destroy());
  const keyUse = createKeyUse({ db: background, log });
  life.onStop('key use', keyUse.close);
  const accounts = openAccounts({ db, background, pepper, config, log });
  life.onStop('accounts', accounts.close);

  const { client, schemas, settings } = await openContext('api', config, life);
  const view = await retryForever(
    () => openLatestView({ client, schemas, settings, namespace }, life),
    {
      ...START_BACKOFF,
      signal,
      onError: (error, attempts) =>
        log.warn({ err: error, attempts }, 'the latest topic cannot be read'),
    },
  );
  life.readyWhen(() => (view.isReady() ? undefined : 'reading the latest topic'));

  const pills = topicName(namespace, 'pills');
  const progress = watchProgress(client, pills, view.processed, life);
  const status = statusEndpoint({
    view,
    epoch: settings.epoch,
    progress,
    oldest: watchOldest(client, pills, life),
    accounts: () => (keyring.isFresh() ? 'up' : 'down'),
    notices: watchNotices(background, life),
  });
  const logEnd = openLogEnd(client, pills, life);
  const analytics = openAnalytics({ config, settings, logEnd }, life);
  const { history, route: historyRoute } = openHistory({ config, settings, logEnd, pepper }, life);
  const { epoch } = settings;
  const webhooks = openWebhooks({ config, db, pepper, history, epoch }, life);
  const { clickhouseUrl, calendarOverrides: overridesPath, venueRules } = config;
  const verify = await retryForever(
    () =>
      openVerify(
        {
          ...{ client, schemas, namespace, settings, view, progress },
          ...{ clickhouseUrl, overridesPath, venueRules },
        },
        life,
      ),
    {
      ...START_BACKOFF,
      signal,
      onError: (error, attempts) => log.warn({ err: error, attempts }, 'the log cannot be read'),
    },
  );
  const { demoAccountId: accountId, addresses } = config;
  const app = await createApiApp({
    keyring,
    meter,
    keyUse,
    findSession: createSessionFinder(accounts.sessions),
    log,
    trustedProxies: config.trustedProxies,
    publicUrl: addresses.api,
    streamUrl: addresses.stream,
    addRoutes(to) {
      to.route(latestEndpoint(view, settings.epoch));
      to.route(historyRoute);
      for (const route of analytics) to.route(route);
      for (const route of verify) to.route(route);
      to.route(status);
      addProblemRoutes(to);
      addHealthRoutes(to, view.isReady);
      addAccountRoutes(to, accounts);
      addWebhookRoutes(to, webhooks);
      if (accountId !== undefined) addDemoTicketRoute(to, { db, accountId });
      addPageRoutes(to, { streamUrl: addresses.stream, hasDemo: accountId !== undefined, log });
    },
  });
  await app.listen({ host: config.host, port: config.port });
  life.onStop('http server', async () => {
    await app.close();
  });
  log.info({ address: app.listeningOrigin }, 'listening');
}

/** While PostgreSQL is away the process starts all the same: its status must be readable. */
function migrateSoon({ databaseUrl, namespace }: ApiConfig, life: Life): void {
  let isMigrated = false;
  life.readyWhen(() => (isMigrated ? undefined : 'waiting for the database of accounts'));
  const migrateAll = async () => {
    await migrate(databaseUrl, namespace);
    await migrateQueue(databaseUrl, namespace);
  };
  retryForever(migrateAll, {
    ...START_BACKOFF,
    signal: life.signal,
    onError: (error, attempts) =>
      life.log.warn({ err: error, attempts }, 'the tables of accounts cannot be made'),
  }).then(() => {
    isMigrated = true;
  }, life.fail);
}
