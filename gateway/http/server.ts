import type { Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import type { Log } from '../../lib/log.ts';
import { type ProblemMembers, problemAnswer } from './problems.ts';
import { answerClientError, sendProblem, writeLastAnswer } from './raw-answers.ts';
import { refuse } from './refuse.ts';

/** Bounds of one HTTP server; Node's own defaults are none, or large. */
export interface HttpLimits {
  readonly connectionsMax: number;
  readonly headerBytesMax: number;
  readonly headersMax: number;
  /** From a request's first byte to its last header. */
  readonly headersTimeoutMs: number;
  /** From a request's first byte to the last of its body. */
  readonly requestTimeoutMs: number;
  /** How often both are checked: they end this much late at the most. */
  readonly timeoutCheckMs: number;
  /** A connection without any traffic, also amid an answer. */
  readonly connectionTimeoutMs: number;
  /** A connection between two requests. */
  readonly keepAliveMs: number;
}

/**
 * Creates a Fastify server whose every answer is ours: what Node or Fastify would refuse in their
 * own words is told as a problem, with `members` added. Known paths answer 405 to other methods.
 * @param trustedProxies whose X-Forwarded-For names the client
 */
export function createHttpServer(
  limits: HttpLimits,
  log: Log,
  members: ProblemMembers = {},
  trustedProxies: readonly string[] = [],
): FastifyInstance {
  const app = Fastify({
    logger: false,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
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
      // isAmbiguous() below counts them, and answers with a body.
      requireHostHeader: false,
    },
    clientErrorHandler: (error, socket) => answerClientError(error, socket as Socket, members),
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack();
      sendProblem(reply.raw, problemAnswer('http_malformed', members));
    },
  });
  // No route of ours leaves its body to Fastify. Its parsers would run even where no route is, and
  // a body that they refuse would turn a 404 or 405 into an error of theirs.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  const { server } = app;
  server.maxConnections = limits.connectionsMax;
  // Node drops headers over its bound without a word; one more than allowed shows that there are.
  server.maxHeadersCount = limits.headersMax + 1;
  server.on('checkExpectation', (_request, response) =>
    sendProblem(response, problemAnswer('expectation_failed', members)),
  );
  server.on('connect', (_request, socket: Socket) =>
    writeLastAnswer(socket, problemAnswer('method_not_allowed', members)),
  );

  const methods = new Map<string, string[]>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? [];
    methods.set(url, known.concat(method));
  });
  app.setNotFoundHandler((request, reply) => {
    const asked = request.url.split('?', 1)[0]!;
    const allowed = [...methods].find(([pattern]) => matchesPattern(pattern, asked))?.[1];
    reply.hijack();
    const answer =
      allowed === undefined
        ? problemAnswer('not_found', members)
        : problemAnswer('method_not_allowed', members, { allow: allowed.join(', ') });
    sendProblem(reply.raw, answer);
  });
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    if (error.validation !== undefined) {
      const code = error.validationContext === 'body' ? 'body_invalid' : 'parameter_invalid';
      // With the headers that were set before, e.g. what is left of the limits.
      return refuse(reply, code, { ...members, errors: error.validation });
    }
    reply.hijack();
    if (error.statusCode !== undefined && error.statusCode < 500) {
      sendProblem(reply.raw, problemAnswer('http_malformed', members), { close: true });
      return reply;
    }
    // Nothing of ours throws here; should it, the sender learns no more than that.
    log.error({ err: error }, 'a request failed unexpectedly');
    sendProblem(reply.raw, problemAnswer('overloaded', { ...members, retry_after_s: 1 }));
    return reply;
  });
  return app;
}

/** A parameter that is given twice becomes a list, which no schema of ours takes. */
function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null);
  const given = new URLSearchParams(text);
  for (const name of given.keys()) {
    const values = given.getAll(name);
    query[name] = values.length === 1 ? values[0] : values;
  }
  return query;
}

/** Whether a path is one of a route's: `:name` stands for any one part. */
function matchesPattern(pattern: string, asked: string): boolean {
  if (!pattern.includes(':')) return pattern === asked;
  const [wanted, given] = [pattern.split('/'), asked.split('/')];
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith(':') ? given[i] !== '' : part === given[i]))
  );
}

/**
 * Whether a request may be read differently by a proxy before us: no Host or two (RFC 9112
 * section 3.2), Content-Type twice. Two Content-Length are refused by Node.
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
