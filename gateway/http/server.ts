import type { Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { Log } from '../../lib/log/log.ts';
import { createClientAddress } from './client-address.ts';
import { type ProblemMembers, problemAnswer } from './problems.ts';
import { answerClientError, sendProblem, writeLastAnswer } from './raw-answers.ts';
import { refuse } from './refuse.ts';

/** Bounds of one HTTP server; Node's own defaults are large or absent. */
export interface HttpLimits {
  readonly connectionsMax: number;
  readonly headerBytesMax: number;
  readonly headersMax: number;
  /** From a request's first byte to its last header. */
  readonly headersTimeoutMs: number;
  /** From a request's first byte to the last of its body. */
  readonly requestTimeoutMs: number;
  /** How often both times are checked, which is also the most that a check can be late. */
  readonly timeoutCheckMs: number;
  /** For a connection without traffic, even in the middle of an answer. */
  readonly connectionTimeoutMs: number;
  /** For a connection between two requests. */
  readonly keepAliveMs: number;
}

/**
 * Creates a Fastify server that answers every error with a problem, including those that Node or
 * Fastify would answer in their own format. `members` is added to each. Known paths answer 405 to
 * other methods.
 * @param trustedProxies proxies whose X-Forwarded-For names the client, which is `request.ip`
 */
export function createHttpServer(
  limits: HttpLimits,
  log: Log,
  members: ProblemMembers = {},
  trustedProxies: readonly string[] = [],
): FastifyInstance {
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: true,
    return503OnClosing: false,
    routerOptions: { querystringParser: parseQuery },
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.connectionTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    http: {
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.timeoutCheckMs,
      maxHeaderSize: limits.headerBytesMax,
      // isAmbiguous() below counts the Host headers, so that a refusal has a body.
      requireHostHeader: false,
    },
    clientErrorHandler: (error, socket) => answerClientError(error, socket as Socket, members),
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack();
      sendProblem(reply.raw, problemAnswer('http_malformed', members));
    },
  });
  // Instead of `trustProxy`, which returns entries that are no addresses, and also believes
  // X-Forwarded-Host and X-Forwarded-Proto.
  const clientAddress = createClientAddress(trustedProxies, log);
  app.decorateRequest('ip', {
    getter() {
      const { socket, headers } = this.raw;
      return clientAddress(socket.remoteAddress, String(headers['x-forwarded-for'] ?? ''));
    },
  });
  // No route here uses Fastify's body parsers. They would run even without a route, and a body that
  // they refuse would turn a 404 or 405 into one of their errors.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  const { server } = app;
  server.maxConnections = limits.connectionsMax;
  // Node silently drops headers over its bound; one more than allowed reveals the excess.
  server.maxHeadersCount = limits.headersMax + 1;
  server.on('checkExpectation', (_request, response) =>
    sendProblem(response, problemAnswer('expectation_failed', members)),
  );
  server.on('connect', (_request, socket: Socket) =>
    writeLastAnswer(socket, problemAnswer('method_not_allowed', members)),
  );

  answerUnknownRoutes(app, members);
  answerErrors(app, log, members);
  return app;
}

/** Answers a path without a route with 404, and a route without the method with 405 and `Allow`. */
function answerUnknownRoutes(app: FastifyInstance, members: ProblemMembers): void {
  const methods = new Map<string, string[]>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? [];
    methods.set(url, known.concat(method));
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0]!;
    const allowed = [...methods].find(([pattern]) => matchesPattern(pattern, path))?.[1];
    reply.hijack();
    const answer =
      allowed === undefined
        ? problemAnswer('not_found', members)
        : problemAnswer('method_not_allowed', members, { allow: allowed.join(', ') });
    sendProblem(reply.raw, answer);
  });
}

/** Answers refused input, malformed requests and errors of a route with a problem. */
function answerErrors(app: FastifyInstance, log: Log, members: ProblemMembers): void {
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if (error.validation !== undefined) {
      const code = error.validationContext === 'body' ? 'body_invalid' : 'parameter_invalid';
      // refuse() keeps headers that are already set, e.g. the rate limits.
      return refuse(reply, code, { ...members, errors: error.validation });
    }
    reply.hijack();
    if (error.statusCode !== undefined && error.statusCode < 500) {
      sendProblem(reply.raw, problemAnswer('http_malformed', members), { close: true });
      return reply;
    }
    // Routes do not throw by design. If one does, the client gets no details.
    const answer = problemAnswer('overloaded', { ...members, retry_after_s: 1 });
    log.error({ err: error, request_id: answer.requestId }, 'a request failed unexpectedly');
    sendProblem(reply.raw, answer);
    return reply;
  });
}

/** A repeated parameter becomes a list, which every schema refuses. */
function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  const pairs = new URLSearchParams(text);
  for (const name of pairs.keys()) {
    const values = pairs.getAll(name);
    query[name] = values.length === 1 ? values[0] : values;
  }
  return query;
}

/** Whether a path matches a route's pattern, in which `:name` stands for one segment. */
export function matchesPattern(pattern: string, path: string): boolean {
  if (!pattern.includes(':')) return pattern === path;
  const [parts, given] = [pattern.split('/'), path.split('/')];
  return (
    parts.length === given.length &&
    parts.every((part, i) => (part.startsWith(':') ? given[i] !== '' : part === given[i]))
  );
}

/**
 * Whether a proxy in front may read the request differently: no Host or two (RFC 9112 section 3.2),
 * or Content-Type twice. Node itself refuses two Content-Length headers.
 */
export function isAmbiguous(rawHeaders: readonly string[], httpVersion: string): boolean {
  let hosts = 0;
  let types = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 12 && name.toLowerCase() === 'content-type') types += 1;
  }
  return types > 1 || hosts > 1 || (hosts === 0 && httpVersion === '1.1');
}
