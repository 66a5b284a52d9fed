import type { FastifyInstance } from 'fastify';
import type { Meter } from '../../lib/access/access.ts';
import type { Log } from '../../lib/log.ts';
import { API_VERSION } from '../http/problems.ts';
import { refuse } from '../http/refuse.ts';
import { createHttpServer, isAmbiguous } from '../http/server.ts';
import { addAsyncApi } from './asyncapi.ts';
import { createGuard, type GuardOptions } from './guard.ts';
import { HTTP_LIMITS } from './limits.ts';
import { addOpenApi, isReference } from './openapi.ts';
import { compileSchema } from './validation.ts';

export interface ApiAppOptions extends GuardOptions {
  readonly log: Log;
  readonly trustedProxies: readonly string[];
  readonly publicUrl: string;
  readonly streamUrl: string;
  /** Adds the routes; each names its access rule. */
  readonly addRoutes: (app: FastifyInstance) => void;
}

/**
 * Creates the API: what is refused before any route, the guard, the OpenAPI document, the routes.
 * @throws when a route names no access rule, so that none is ever open by mistake.
 */
export async function createApiApp(options: ApiAppOptions): Promise<FastifyInstance> {
  const app = createHttpServer(HTTP_LIMITS, options.log, {}, options.trustedProxies);
  app.setValidatorCompiler(compileSchema);
  // Answers are told by schemas, and held to them by tests; they are not filtered by them.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.decorateRequest('caller', undefined);
  app.decorateRequest('meteredCall', undefined);
  app.decorateRequest('rawBody', undefined);
  app.decorateRequest('refusableAtMs', 0);
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.access !== undefined || isReference(url)) return;
    throw new Error(`${url} names no access rule.`);
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('api-version', API_VERSION);
    const { rawHeaders, httpVersion } = request.raw;
    if (isAmbiguous(rawHeaders, httpVersion)) refuse(reply, 'http_malformed');
    else done();
  });
  app.addHook('onRequest', createGuard(options));
  giveBackAfterErrors(app, options.meter);
  await addOpenApi(app, options.publicUrl);
  await addAsyncApi(app, options.streamUrl);
  options.addRoutes(app);
  await app.ready();
  return app;
}

/** A call that we could not answer costs nothing. */
function giveBackAfterErrors(app: FastifyInstance, meter: Meter): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { meteredCall } = request;
    if (meteredCall !== undefined && reply.raw.statusCode >= 500) meter.giveBack(meteredCall);
    done();
  });
}
