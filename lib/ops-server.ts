import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { metricsRegistry } from './metrics.ts';

export interface OpsServer {
  /** Address of /metrics. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves /metrics (Prometheus text), /metrics.json (the same for programs), /health (200 while the
 * process lives) and /ready (200, or 503 with the reason). Meant for a private address.
 */
export async function startOpsServer(options: {
  readonly host: string;
  readonly port: number;
  readonly notReady: () => string | undefined;
}): Promise<OpsServer> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: string, type = 'application/json') => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
      response.end(body);
    };
    const path = (request.url ?? '').split('?', 1)[0];
    if (path === '/health') answer(200, '{"status":"ok"}');
    else if (path === '/ready') {
      const reason = options.notReady();
      if (reason === undefined) answer(200, '{"status":"ready"}');
      else answer(503, JSON.stringify({ status: 'not_ready', reason }));
    } else if (path === '/metrics') {
      metricsRegistry.metrics().then(
        (text) => answer(200, text, metricsRegistry.contentType),
        () => answer(500, '{"status":"error"}'),
      );
    } else if (path === '/metrics.json') {
      metricsRegistry.getMetricsAsJSON().then(
        (metrics) => answer(200, JSON.stringify(metrics)),
        () => answer(500, '{"status":"error"}'),
      );
    } else {
      const known = ['/metrics', '/metrics.json', '/health', '/ready'];
      answer(404, JSON.stringify({ status: 'not_found', known }));
    }
  });
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
