import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { sendAnswer, sendError } from './answer.ts';
import { engineError, refusal } from './clickhouse-error.ts';
import { type Executor, execute } from './execute.ts';
import { CONNECTIONS_MAX, REQUEST_MS_MAX } from './limits.ts';

/** Longer than what clients keep an idle connection for, so that they close it and not we. */
const KEEP_ALIVE_MS = 30_000;
const HEADERS_MS_MAX = 10_000;

/** The HTTP side: who may knock, one request to one answer. The server does not listen yet. */
export function createHttpServer(executor: Executor): Server {
  const server = createServer((request, response) => {
    void answer(executor, request, response);
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.requestTimeout = REQUEST_MS_MAX;
  server.headersTimeout = HEADERS_MS_MAX;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return server;
}

async function answer(
  executor: Executor,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  const queryId = url.searchParams.get('query_id') || randomUUID();
  const abandoned = new AbortController();
  response.once('close', () => abandoned.abort());
  try {
    refuseBrowsers(request);
    if (isPing(request, url)) return void response.end('Ok.\n');
    if (url.pathname !== '/') {
      throw refusal('BAD_ARGUMENTS', `There is no resource ${url.pathname}`, 404);
    }
    if (request.method !== 'GET' && request.method !== 'POST') {
      throw refusal('BAD_ARGUMENTS', 'Only GET and POST', 405);
    }
    const executed = await execute(executor, request, url, abandoned.signal);
    await sendAnswer(request, response, executed, queryId);
  } catch (error) {
    if (abandoned.signal.aborted) return;
    // The rest of a refused body is not read: the connection cannot carry another request.
    if (!request.complete) response.setHeader('connection', 'close');
    sendError(response, engineError(error), executor.engine.version, queryId);
  }
}

function isPing(request: IncomingMessage, url: URL): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  if (url.pathname === '/ping' || url.pathname === '/replicas_status') return true;
  return url.pathname === '/' && url.search === '';
}

/**
 * No password guards this port, so no web page may use it: not by a request across origins (they
 * carry Origin or Sec-Fetch-Site), not by a host name that was bent to 127.0.0.1.
 */
function refuseBrowsers(request: IncomingMessage): void {
  const site = request.headers['sec-fetch-site'];
  if (request.headers.origin !== undefined || (site !== undefined && site !== 'none')) {
    throw refusal('ACCESS_DENIED', 'Not for web pages');
  }
  const host = (request.headers.host ?? 'localhost').replace(/:\d+$/, '').toLowerCase();
  if (!/^(127(\.\d+){3}|\[::1\]|localhost)$/.test(host)) {
    throw refusal('ACCESS_DENIED', 'Only under the name localhost or 127.0.0.1');
  }
}
