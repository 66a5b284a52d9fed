import fastifyCors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isOriginAllowed } from '../../http/origins.ts';
import { matchesPattern } from '../../http/server.ts';
import { type AccessRule, OPEN } from './access-rule.ts';

/** Headers of answers that pages of other origins can read, besides those that browsers allow. */
export const EXPOSED_HEADERS = [
  ...['RateLimit', 'RateLimit-Policy', 'Retry-After', 'ETag', 'Link'],
  ...['Pill-Position', 'Pill-Receipt', 'Repr-Digest'],
  ...['Api-Version', 'WWW-Authenticate'],
];
const ALLOWED_HEADERS = [
  ...['X-API-Key', 'Content-Type', 'If-None-Match'],
  ...['Authorization', 'Signature', 'Signature-Input', 'Content-Digest'],
];
/** Browsers ask again after this time; Chromium remembers no longer. */
const PREFLIGHT_MAX_AGE_S = 7_200;
/** The plugin's route, which every preflight matches. */
const PREFLIGHT_PATH = '*';

/**
 * Lets pages of the allowed origins read the API with a key, and what is open to anyone. Cookies
 * do not cross origins: `Access-Control-Allow-Credentials` is never sent, and routes that need a
 * session, or begin one, are not opened. Preflights are answered from memory.
 */
export async function addCors(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  const openMethods = new Map<string, string[]>();
  app.addHook('onRoute', (route) => {
    const { url, config } = route;
    if (url === PREFLIGHT_PATH) route.config = { ...config, access: OPEN };
    for (const method of [route.method].flat()) {
      const known = openMethods.get(url) ?? [];
      openMethods.set(url, isOpen(config?.access, method) ? [...known, method] : known);
    }
  });
  /** Without a route the page may read the 404. */
  const methodsAt = (path: string) =>
    openMethods.get(path) ??
    [...openMethods].find(([pattern]) => matchesPattern(pattern, path))?.[1] ?? ['GET'];
  const optionsFor = (request: FastifyRequest): FastifyCorsOptions => {
    const { origin, 'access-control-request-method': wanted } = request.headers;
    if (!origin || !isOriginAllowed(origin, origins)) return { origin: false };
    const methods = methodsAt(request.url.split('?', 1)[0]!);
    const method = request.method === 'OPTIONS' ? wanted : request.method;
    if (!methods.includes(method ?? '')) return { origin: false };
    return {
      origin: true,
      methods,
      allowedHeaders: ALLOWED_HEADERS,
      exposedHeaders: EXPOSED_HEADERS,
      maxAge: PREFLIGHT_MAX_AGE_S,
    };
  };
  await app.register(fastifyCors, {
    delegator: (request, answer) => answer(null, optionsFor(request)),
  });
  app.addHook('onRequest', (_request, reply, done) => {
    // Also on the raw answer: those to unknown paths do not pass through Fastify.
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      reply.raw.setHeader(name, value!);
    }
    done();
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    // Routes set what their own answers depend on.
    const vary = String(reply.getHeader('vary') ?? '');
    if (!vary.includes('Origin')) reply.header('vary', vary === '' ? 'Origin' : `${vary}, Origin`);
    done(null, payload);
  });
}

/** Whether pages of other origins may call a route: by key, or reads that need no credential. */
function isOpen(rule: AccessRule | undefined, method: string): boolean {
  if (rule?.by === 'account') return rule.accepts.includes('key');
  return rule?.by === 'anyone' && (method === 'GET' || method === 'HEAD');
}
