import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGuardedServer } from '../../../lib/http/guarded-server.ts';
import { isFromPage, isLocalHost } from '../../../lib/http/local-request.ts';
import { engineError, refusal } from './clickhouse-error.ts';
import { type Executor, execute } from './execute.ts';
import { CONNECTIONS_MAX, REQUEST_MS_MAX } from './limits.ts';
import { sendError, sendResult } from './response.ts';

/** Longer than clients keep idle connections, so that the clients close them first. */
const KEEP_ALIVE_MS = 30_000;
const HEADERS_MS_MAX = 10_000;
/** A refused body of this size is read to its end, for at most this time. */
const SMALL_BODY_BYTES = 65_536;
const SMALL_BODY_MS = 1_000;

/** Creates the HTTP server, which does not listen yet. */
export function createHttpServer(executor: Executor): Server {
  const server = createGuardedServer(
    (request, response, url) => answer(executor, request, response, url),
    (error) => process.stderr.write(`clickhouse failed to answer: ${error}\n`),
  );
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
  url: URL,
): Promise<void> {
  // Sent back in a header, which may not hold every character.
  const wanted = url.searchParams.get('query_id') ?? '';
  const queryId = /^[\x21-\x7e]{1,256}$/.test(wanted) ? wanted : randomUUID();
  const abandoned = new AbortController();
  response.once('close', () => abandoned.abort());
  try {
    refuseBrowsers(request);
    if (isPing(request, url)) return void response.end('Ok.\n');
    if (url.pathname !== '/') {
      throw refusal('BAD_ARGUMENTS', `There is no resource ${url.pathname}`, 404);
    }
    if (request.method !== 'GET' && request.method !== 'POST') {
      throw refusal('BAD_ARGUMENTS', 'Only GET and POST are allowed', 405);
    }
    const executed = await execute(executor, request, url, abandoned.signal);
    await sendResult(request, response, executed, queryId, executor);
  } catch (error) {
    if (abandoned.signal.aborted) return;
    await readSmallRest(request);
    // The rest of a refused body stays unread, so the connection cannot carry another request.
    if (!request.complete) response.setHeader('connection', 'close');
    sendError(response, engineError(error), executor.engine.version, queryId);
  }
}

/**
 * Reads the rest of a small body before a refusal: a client that is still sending when the connection
 * closes reports the broken connection instead of the refusal.
 */
async function readSmallRest(request: IncomingMessage): Promise<void> {
  const isSmall = Number(request.headers['content-length']) <= SMALL_BODY_BYTES;
  if (request.complete || request.destroyed || !isSmall) return;
  request.resume();
  await Promise.race([once(request, 'end'), sleep(SMALL_BODY_MS)]).catch(() => undefined);
}

function isPing(request: IncomingMessage, url: URL): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  if (url.pathname === '/ping' || url.pathname === '/replicas_status') return true;
  return url.pathname === '/' && url.search === '';
}

/** Web pages are refused, whatever password they guess, by a foreign host name too (DNS rebinding). */
function refuseBrowsers({ headers }: IncomingMessage): void {
  if (isFromPage(headers)) throw refusal('ACCESS_DENIED', 'Web pages may not use this server');
  if (!isLocalHost(headers.host)) {
    throw refusal('ACCESS_DENIED', 'Use the host name localhost or 127.0.0.1');
  }
}
