import { retryForever } from '../../lib/backoff.ts';
import { openContext } from '../../lib/context.ts';
import { runProcess } from '../../lib/run.ts';
import { topicName } from '../../schemas/topics.ts';
import { API_VERSION } from '../http/problems.ts';
import { refuse } from '../http/refuse.ts';
import { createHttpServer, isAmbiguous } from '../http/server.ts';
import { readApiConfig } from './config.ts';
import { createLatestRoute } from './latest-route.ts';
import { HTTP_LIMITS } from './limits.ts';
import { watchOldest } from './oldest.ts';
import { watchProgress } from './progress.ts';
import { createStatusRoute } from './status-route.ts';
import { openLatestView } from './view.ts';

await runProcess(
  'api',
  () => readApiConfig(process.env),
  async (config, life) => {
    const { log, signal } = life;
    const { namespace } = config;
    const { client, schemas, settings } = await openContext('api', config, life);
    const view = await retryForever(
      () => openLatestView({ client, schemas, settings, namespace }, life),
      {
        firstMs: 200,
        maxMs: 3_000,
        signal,
        onError: (error, attempts) =>
          log.warn({ err: error, attempts }, 'the latest topic cannot be read'),
      },
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
