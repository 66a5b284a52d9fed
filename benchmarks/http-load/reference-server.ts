import Fastify, { type FastifyInstance } from 'fastify';
import { type CommonConfig, readCommonConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';
import { type Lifecycle, runProcess } from '../../lib/run/run-process.ts';

/** The HTTP bounds that ingest and the API do not share, in ms. */
const BOUNDS = {
  ingest: { connectionTimeout: 15_000, keepAliveTimeout: 65_000, checkingInterval: 500 },
  api: { connectionTimeout: 30_000, keepAliveTimeout: 72_000, checkingInterval: 1_000 },
} as const;

/** Runs a server that ingest or the API is compared with, under the HTTP bounds of that process. */
export function runReference(
  name: string,
  like: 'ingest' | 'api',
  addRoute: (app: FastifyInstance, config: CommonConfig, life: Lifecycle) => unknown,
): Promise<void> {
  const { checkingInterval: connectionsCheckingInterval, ...timers } = BOUNDS[like];
  const read = (env: NodeJS.ProcessEnv) =>
    readConfig(env, (reader) => ({
      ...readCommonConfig(reader),
      port: reader.get(like === 'ingest' ? 'INGEST_PORT' : 'API_PORT'),
    }));
  return runProcess(name, read, async (config, life) => {
    const app = Fastify({
      logger: false,
      exposeHeadRoutes: true,
      return503OnClosing: false,
      requestTimeout: 10_000,
      ...timers,
      http: { headersTimeout: 5_000, connectionsCheckingInterval, maxHeaderSize: 16 * 1024 },
    });
    await addRoute(app, config, life);
    await app.listen({ host: '127.0.0.1', port: config.port });
    life.onStop('http server', async () => {
      await app.close();
    });
  });
}

export function naiveTopic(namespace: string): string {
  return `${namespace}.naive`;
}
