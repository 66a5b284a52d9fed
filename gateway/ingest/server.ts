import type { FastifyInstance } from 'fastify';
import type { Log } from '../../lib/log.ts';
import { createHttpServer } from '../http/server.ts';
import { createBatchEndpoint } from './batch-route.ts';
import type { Credentials } from './credentials.ts';
import type { Intake } from './intake.ts';
import { HTTP_LIMITS, INGEST_LIMITS } from './limits.ts';
import { createPillEndpoint } from './pill-route.ts';
import { createReceiver, type Endpoint, type Receiver } from './receive.ts';

export interface IngestServer {
  readonly receiver: Receiver;
  /** @returns the address it listens at. */
  listen(host: string, port: number): Promise<string>;
  /** Takes no new connection, answers what is in flight, then cuts what is left. */
  close(): Promise<void>;
}

/** Creates the write-only server: it takes pills, and tells how it is. */
export function createIngestServer(options: {
  readonly credentials: Credentials | undefined;
  readonly intake: () => Intake | undefined;
  readonly notReady: () => string | undefined;
  readonly log: Log;
}): IngestServer {
  const { log } = options;
  const app = createHttpServer(HTTP_LIMITS, log, { stored: 'no' });
  const receiver = createReceiver({
    credentials: options.credentials,
    onError: (error) => log.error({ err: error }, 'a request failed unexpectedly'),
  });
  addEndpoint(app, receiver, '/api/pillole', createPillEndpoint(options.intake));
  addEndpoint(app, receiver, '/api/pillole/batch', createBatchEndpoint(options.intake));
  app.get('/health', (_request, reply) => {
    reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  app.get('/ready', (_request, reply) => {
    const reason = options.notReady();
    reply.header('cache-control', 'no-store').code(reason === undefined ? 200 : 503);
    reply.send(reason === undefined ? { status: 'ready' } : { status: 'not_ready', reason });
  });
  return {
    receiver,
    listen: (host, port) => app.listen({ host, port }),
    async close() {
      const closed = app.close();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, INGEST_LIMITS.drainMs);
      });
      await Promise.race([closed, late]);
      clearTimeout(timer);
      app.server.closeAllConnections();
      await closed;
    },
  };
}

// The answer is given in the first hook, and the hook never goes on: Fastify routes, we do the
// rest. Its body parsing bounds the bytes of one request, but not of all of them together.
function addEndpoint(
  app: FastifyInstance,
  { receive }: Receiver,
  url: string,
  endpoint: Endpoint,
): void {
  app.route({
    method: 'POST',
    url,
    onRequest: (request, reply, _next) => receive(endpoint, request.raw, reply.raw),
    handler: () => {
      throw new Error('The hook has answered.');
    },
  });
}
