import type { FastifyInstance } from 'fastify';
import type { Meter } from '../../../domain/access/meter.ts';
import type { Log } from '../../../lib/log/log.ts';
import { createAnswerLog } from '../../http/answer-log.ts';
import { openServerRefusal } from '../../http/open-server.ts';
import { API_VERSION } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { createHttpServer, isAmbiguous } from '../../http/server.ts';
import { HTTP_LIMITS } from '../limits.ts';
import { ruleFault } from './access-rule.ts';
import { addAsyncApi } from './asyncapi.ts';
import { addCors } from './cors.ts';
import { createGuard, type GuardOptions } from './guard.ts';
import { addOpenApi, isReference } from './openapi.ts';
import { countAnswer } from './request-metrics.ts';
import { countSecurity } from './security-hook.ts';
import { isSecure, sessionCookieName } from './session-cookie.ts';
import { compileSchema } from './validation.ts';

/**
 * Creates the API: checks that precede any route, the guard, the OpenAPI document, the routes.
 * @param options.addRoutes adds the routes, each with its access rule
 * @throws if a route names no access rule, or no scope of keys, so that none is open by mistake
 */
export async function createApiApp(
  options: GuardOptions & {
    readonly log: Log;
    readonly trustedProxies: readonly string[];
    /** Origins whose web pages may read the API, besides pages of this machine. */
    readonly origins: readonly string[];
    /** Whether only this machine can reach the platform. */
    readonly isLocal: boolean;
    readonly publicUrl: string;
    readonly ingestUrl: string;
    /** `dedicated` is a template, see `dedicatedUrl`. */
    readonly streamUrls: { readonly stream: string; readonly dedicated: string };
    readonly addRoutes: (app: FastifyInstance) => void;
  },
): Promise<FastifyInstance> {
  const app = createHttpServer(HTTP_LIMITS, options.log, {}, options.trustedProxies);
  app.setValidatorCompiler(compileSchema);
  // Schemas document the answers, and tests hold the answers to them; they do not filter them.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  app.decorateRequest('caller', undefined);
  app.decorateRequest('generator', undefined);
  app.decorateRequest('meteredCall', undefined);
  app.decorateRequest('problemCode', undefined);
  app.decorateRequest('problemId', undefined);
  app.decorateRequest('rawBody', undefined);
  app.decorateRequest('bodyDigests', undefined);
  app.decorateRequest('refusableAtMs', 0);
  await addCors(app, options.origins);
  app.addHook('onRoute', ({ url, config }) => {
    const fault = isReference(url) ? undefined : ruleFault(config?.access);
    if (fault !== undefined) throw new Error(`${url} ${fault}.`);
  });
  // Test billing is free, so the API serves only programs and pages of this machine, and of the
  // allowed origins.
  const local = { pages: { origins: options.origins }, hostnames: [] };
  const headers = browserHeaders(options.publicUrl);
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('api-version', API_VERSION);
    // On the raw answer: those to unknown paths do not pass through Fastify.
    for (const [name, value] of headers) reply.raw.setHeader(name, value);
    const { rawHeaders, httpVersion } = request.raw;
    if (isAmbiguous(rawHeaders, httpVersion)) return void refuse(reply, 'http_malformed');
    const refusal = options.isLocal ? openServerRefusal(request.headers, local) : undefined;
    if (refusal === undefined) done();
    else refuse(reply, ...refusal);
  });
  nameCookie(app, options.publicUrl);
  app.addHook('onRequest', createGuard(options));
  app.addHook('onResponse', countSecurity);
  app.addHook('onResponse', countAnswer);
  logAnswers(app, options.log);
  giveBackAfterErrors(app, options.meter);
  await addOpenApi(app, options);
  await addAsyncApi(app, options.streamUrls);
  options.addRoutes(app);
  await app.ready();
  return app;
}

/** Logs answers with the request id that the client has seen, if the answer is a problem. */
function logAnswers(app: FastifyInstance, log: Log): void {
  const lines = createAnswerLog(log);
  app.addHook('onResponse', (request, reply, done) => {
    lines.note(reply.raw.statusCode, () => ({
      request_id: request.problemId ?? request.id,
      code: request.problemCode,
      method: request.method,
      route: request.routeOptions.url,
      account: request.caller?.account.id,
      ms: Math.round(reply.elapsedTime),
    }));
    done();
  });
}

/** Headers of every answer, for browsers. */
function browserHeaders(publicUrl: string): readonly (readonly [string, string])[] {
  return [
    ['x-content-type-options', 'nosniff'],
    // A year: from the first answer on, browsers do not send cookies or passwords in clear.
    ...(isSecure(publicUrl) ? [['strict-transport-security', 'max-age=31536000'] as const] : []),
  ];
}

/** The catalogue of problems names the cookie of plain http; over TLS it has another name. */
function nameCookie(app: FastifyInstance, publicUrl: string): void {
  if (!isSecure(publicUrl)) return;
  const name = `cookie-name="${sessionCookieName(publicUrl)}"`;
  app.addHook('onSend', (_request, reply, payload, done) => {
    const challenge = reply.getHeader('www-authenticate');
    if (typeof challenge === 'string') {
      reply.header('www-authenticate', challenge.replace(/cookie-name="\w+"/, name));
    }
    done(null, payload);
  });
}

/** A call that ends in a 5xx costs nothing. */
function giveBackAfterErrors(app: FastifyInstance, meter: Meter): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { meteredCall } = request;
    if (meteredCall !== undefined && reply.raw.statusCode >= 500) meter.giveBack(meteredCall);
    done();
  });
}
