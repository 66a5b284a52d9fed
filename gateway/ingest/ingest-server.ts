import type { FastifyInstance } from 'fastify';
import { networkOf } from '../../domain/access/network-of.ts';
import type { Log } from '../../lib/log/log.ts';
import { createKeyedCounter } from '../../lib/rate/window-counter.ts';
import { prepareDocument } from '../http/document.ts';
import { ingestDocument } from '../http/ingest-document.ts';
import { problemList, problemPage } from '../http/problem-pages.ts';
import { refuse } from '../http/refuse.ts';
import { createHttpServer } from '../http/server.ts';
import { answers } from './answers.ts';
import { BATCH_ROUTE } from './batch-route.ts';
import type { Intake } from './intake.ts';
import { HTTP_LIMITS, INGEST_LIMITS } from './limits.ts';
import { PILL_ROUTE } from './pill-route.ts';
import { createReceiver, type IngestRoute, type Receiver, type Senders } from './receive.ts';

/** Creates the server, which accepts pills, documents itself and reports its health. */
export function createIngestServer(
  senders: Senders,
  intake: () => Intake | undefined,
  notReady: () => string | undefined,
  log: Log,
  trustedProxies: readonly string[],
) {
  const app = createHttpServer(HTTP_LIMITS, log, { stored: 'no' }, trustedProxies);
  const receiver = createReceiver(senders, intake, (error) =>
    log.error({ err: error }, 'a request failed unexpectedly'),
  );
  answers.open(log);
  const logRefusal = createRefusalLog(log);
  for (const route of [PILL_ROUTE, BATCH_ROUTE]) addRoute(app, receiver, route);
  app.addHook('onResponse', (request, reply, done) => {
    if (reply.raw.statusCode === 401 || reply.raw.statusCode === 403) logRefusal(request.ip);
    done();
  });
  app.get('/health', (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  app.get('/ready', (_request, reply) => {
    const reason = notReady();
    reply.header('cache-control', 'no-store').code(reason === undefined ? 200 : 503);
    reply.send(reason === undefined ? { status: 'ready' } : { status: 'not_ready', reason });
  });
  addDocuments(app);
  return {
    receiver,
    /** @returns the address it listens on */
    listen: (host: string, port: number) => app.listen({ host, port }),
    /** Refuses new connections, answers requests in flight, then cuts the remaining connections. */
    async close(): Promise<void> {
      const closed = app.close();
      const cut = setTimeout(() => app.server.closeAllConnections(), INGEST_LIMITS.drainMs);
      await closed.finally(() => clearTimeout(cut));
      app.server.closeAllConnections();
    },
  };
}

/** Adds the OpenAPI document, and the pages that `type` of a problem refers to. */
function addDocuments(app: FastifyInstance): void {
  const documents = [
    ['/openapi.json', prepareDocument(ingestDocument())],
    ['/problems', prepareDocument(problemList())],
  ] as const;
  for (const [url, answer] of documents) {
    app.get(url, (request, reply) => {
      const { status, headers, body } = answer(request.headers);
      return reply.code(status).headers(headers).send(body);
    });
  }
  app.get<{ Params: { name: string } }>('/problems/:name', ({ params }, reply) => {
    return problemPage(params.name) ?? refuse(reply, 'object_not_found', { stored: 'no' });
  });
}

/** Logs clients whose credentials are refused, so that an operator finds an expired token. */
function createRefusalLog(log: Log) {
  const logged = createKeyedCounter({ max: 1, windowMs: INGEST_LIMITS.refusalLogMs });
  return (address: string) => {
    if (logged.take(networkOf(address)) > 0) return;
    log.warn({ address }, 'a credential was refused');
  };
}

// The first hook answers and never calls `next`: Fastify only routes. Its body parsing would bound
// the bytes of one request, but not of all requests together.
function addRoute(app: FastifyInstance, { receive }: Receiver, route: IngestRoute): void {
  app.route({
    method: 'POST',
    url: route.path,
    onRequest: (request, reply, _next) => receive(route, request.raw, reply.raw),
    handler: () => {
      throw new Error('The hook has answered.');
    },
  });
}
