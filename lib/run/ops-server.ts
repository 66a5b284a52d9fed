import type { AddressInfo } from 'node:net';
import { createGuardedServer } from '../http/guarded-server.ts';
import { isLocalHost } from '../http/local-request.ts';
import { isLoopback } from '../http/loopback.ts';
import type { Log } from '../log/log.ts';
import { metricsAsJson, metricsRegistry } from '../metrics/metrics.ts';

/**
 * Serves /metrics (Prometheus text), /metrics.json (the same as JSON), /health (200 while the
 * process lives) and /ready (200, or 503 with the reason). Meant for a private address; on loopback
 * it answers only requests to a name of this machine, so that no web page can read it.
 * @returns the address of /metrics, and how to close the server
 */
export async function startOpsServer(options: {
  readonly host: string;
  readonly port: number;
  readonly notReady: () => string | undefined;
  readonly log: Log;
}): Promise<{ readonly url: string; close(): Promise<void> }> {
  const isLocal = isLoopback(options.host);
  const server = createGuardedServer(
    async (request, response, { pathname }) => {
      const answer = (status: number, body: string, type = 'application/json') => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
        response.end(body);
      };
      if (isLocal && !isLocalHost(request.headers.host)) {
        answer(403, '{"status":"refused","reason":"Use the host name localhost or 127.0.0.1."}');
      } else if (pathname === '/health') answer(200, '{"status":"ok"}');
      else if (pathname === '/ready') {
        const reason = options.notReady();
        if (reason === undefined) answer(200, '{"status":"ready"}');
        else answer(503, JSON.stringify({ status: 'not_ready', reason }));
      } else if (pathname === '/metrics') {
        answer(200, await metricsRegistry.metrics(), metricsRegistry.contentType);
      } else if (pathname === '/metrics.json') {
        answer(200, JSON.stringify(await metricsAsJson()));
      } else {
        const known = ['/metrics', '/metrics.json', '/health', '/ready'];
        answer(404, JSON.stringify({ status: 'not_found', known }));
      }
    },
    (error) => options.log.error({ err: error }, 'a request to the ops server failed'),
  );
  server.requestTimeout = 5_000;
  server.headersTimeout = 5_000;
  server.maxConnections = 100;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host}:${port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
