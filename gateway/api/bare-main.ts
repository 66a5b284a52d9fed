import {
  type CommonConfig,
  ConfigError,
  isLoopback,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';
import { openContext } from '../../lib/context.ts';
import { type Life, runProcess } from '../../lib/run.ts';
import { API_VERSION } from '../http/problems.ts';
import { refuse } from '../http/refuse.ts';
import { createHttpServer, isAmbiguous } from '../http/server.ts';
import { latestEndpoint } from './latest-route.ts';
import { HTTP_LIMITS } from './limits.ts';
import { openLatestView } from './view.ts';

interface BareConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
}

await runProcess('bare', () => readBareConfig(process.env), buildBare);

/**
 * Only for `npm run bench -- access`, which asks what the guard costs: the server, the view and
 * the route of the latest pills as in the API, without key, quota and limits. It reads no accounts
 * and belongs in no deployment.
 */
async function buildBare(config: BareConfig, life: Life): Promise<void> {
  const { client, schemas, settings } = await openContext('bare', config, life);
  const { namespace, host, port } = config;
  const view = await openLatestView({ client, schemas, settings, namespace }, life);
  life.readyWhen(() => (view.isReady() ? undefined : 'reading the latest topic'));

  const app = createHttpServer(HTTP_LIMITS, life.log);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('api-version', API_VERSION);
    const { rawHeaders, httpVersion } = request.raw;
    if (isAmbiguous(rawHeaders, httpVersion)) refuse(reply, 'http_malformed');
    else done();
  });
  app.route(latestEndpoint(view, settings.epoch));
  await app.listen({ host, port });
  life.onStop('http server', async () => {
    await app.close();
  });
  life.log.info({ address: app.listeningOrigin }, 'listening without any access rule');
}

/** @throws ConfigError naming each fault, and when others than this machine could reach it */
function readBareConfig(env: NodeJS.ProcessEnv): BareConfig {
  const config = readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    host: reader.text('API_HOST', '127.0.0.1'),
    port: reader.integer('API_PORT', { min: 0, max: 65_535 }),
  }));
  if (isLoopback(config.host)) return config;
  throw new ConfigError(`API_HOST ${config.host} must be a loopback address: nothing is guarded.`);
}
