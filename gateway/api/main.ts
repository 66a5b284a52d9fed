import { retryForever } from '../../lib/backoff.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { runProcess } from '../../lib/run.ts';
import { requireTopicSettings } from '../../lib/settings.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topics.ts';
import { refuse } from '../http/refuse.ts';
import { createHttpServer, isAmbiguous } from '../http/server.ts';
import { readApiConfig } from './config.ts';
import { createLatestRoute } from './latest-route.ts';
import { HTTP_LIMITS } from './limits.ts';
import { watchOldest } from './oldest.ts';
import { watchProgress } from './progress.ts';
import { API_VERSION, createStatusRoute } from './status-route.ts';
import { openLatestView } from './view.ts';

await runProcess(
  'api',
  () => readApiConfig(process.env),
  async (config, life) => {
    const { log, signal } = life;
    const { namespace } = config;
    const client = createKafkaClient(config.kafkaBrokers, 'pillole-api', log);
    const schemas = createSchemaClient(config.registryUrl, namespace);
    const retry = <T>(what: string, attempt: () => Promise<T>) =>
      retryForever(attempt, {
        firstMs: 200,
        maxMs: 3_000,
        signal,
        onError: (error, attempts) => log.warn({ err: error, attempts }, what),
      });
    const settings = await retry('no topic settings yet', () =>
      requireTopicSettings(client, schemas, namespace),
    );
    const view = await retry('the latest topic cannot be read', () =>
      openLatestView({ client, schemas, settings, namespace }, life),
    );
    life.readyWhen(() => (view.isReady() ? undefined : 'reading the latest topic'));

    const pills = topicName(namespace, 'pills');
    const progress = watchProgress(client, pills, view.processed, life);
    const oldest = watchOldest(client, pills, life);

    const app = createHttpServer(HTTP_LIMITS, log);
    app.addHook('onRequest', async (request, reply) => {
      reply.header('api-version', API_VERSION);
      const { rawHeaders, httpVersion } = request.raw;
      return isAmbiguous(rawHeaders, httpVersion) ? refuse(reply, 'http_malformed') : undefined;
    });
    app.get('/api/pills/latest', createLatestRoute(view, settings.epoch));
    app.get('/api/status', createStatusRoute(view, settings.epoch, oldest, progress));
    app.get('/health', () => ({ status: 'ok' }));
    app.get('/ready', (_request, reply) =>
      view.isReady() ? { status: 'ready' } : reply.code(503).send({ status: 'not_ready' }),
    );
    await app.listen({ host: config.host, port: config.port });
    life.onStop('http server', async () => {
      await app.close();
    });
    log.info({ address: app.listeningOrigin }, 'listening');
  },
);
