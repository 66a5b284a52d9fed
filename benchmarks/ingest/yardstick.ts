import type { Server } from 'node:http';
import type { FastifyHttpOptions } from 'fastify';
import { type CommonConfig, readCommonConfig, readConfig } from '../../lib/config.ts';

/** The HTTP bounds that ingest runs with, for what it is compared with: the same timers run. */
export const HTTP_OPTIONS: FastifyHttpOptions<Server> = {
  logger: false,
  exposeHeadRoutes: true,
  return503OnClosing: false,
  requestTimeout: 10_000,
  connectionTimeout: 15_000,
  keepAliveTimeout: 65_000,
  http: { headersTimeout: 5_000, connectionsCheckingInterval: 500, maxHeaderSize: 16 * 1024 },
};

export interface YardstickConfig extends CommonConfig {
  readonly port: number;
}

/** @throws ConfigError naming each fault */
export function readYardstickConfig(): YardstickConfig {
  return readConfig(process.env, (reader) => ({
    ...readCommonConfig(reader),
    port: reader.integer('INGEST_PORT', { min: 1, max: 65_535 }),
  }));
}

/** Where the naive server writes. */
export function naiveTopic(namespace: string): string {
  return `${namespace}.naive`;
}
