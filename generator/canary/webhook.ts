import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { createGuardedServer } from '../../lib/http/guarded-server.ts';
import type { Log } from '../../lib/log/log.ts';
import type { CanaryConfig, WebhookReceiverConfig } from './config.ts';
import type { Sightings } from './sightings.ts';

const BODY_BYTES_MAX = 64 * 1024;
const DESCRIPTION = 'canary';

interface Message {
  readonly type: string;
  readonly data: { readonly id?: string; readonly pills?: readonly { readonly id: string }[] };
}

/**
 * Listens for webhooks, and makes the endpoint that leads here; endpoints that earlier runs have
 * left are removed. The path is a secret, because bodies are not checked further.
 * @throws Error if the API refuses the endpoint
 */
export async function openWebhook(
  config: CanaryConfig & { readonly webhook: WebhookReceiverConfig },
  sightings: Sightings,
  log: Log,
) {
  const path = `/${randomBytes(16).toString('hex')}`;
  const server = createGuardedServer(
    async (message, response, { pathname }) => {
      if (pathname !== path || message.method !== 'POST') return void response.writeHead(404).end();
      const text = await readBody(message);
      if (text === undefined) return void response.writeHead(413).end();
      const { type, data } = JSON.parse(text) as Message;
      if (type === 'pill.published') sightings.see('webhook', data.id!);
      if (type === 'pills.published')
        for (const { id } of data.pills!) sightings.see('webhook', id);
      // The answer to a challenge repeats the body.
      response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    },
    (error) => log.warn({ err: error }, 'a webhook could not be read'),
  );
  const { host, port, url } = config.webhook;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  const own = `http://${host}:${(server.address() as AddressInfo).port}`;
  const endpointId = await makeEndpoint(config, `${url ?? own}${path}`).catch((error) => {
    // The caller tries again, at the same port.
    stop();
    throw error;
  });
  return {
    async close(): Promise<void> {
      await call(config, 'DELETE', `/api/webhooks/${endpointId}`).catch((error) =>
        log.warn({ err: error }, 'the endpoint was not removed; the next start removes it'),
      );
      stop();
    },
  };
}

async function makeEndpoint(config: CanaryConfig, url: string): Promise<string> {
  const { data } = await call<{ data: { id: string; description: string }[] }>(
    config,
    'GET',
    '/api/webhooks',
  );
  for (const { id, description } of data) {
    if (description === DESCRIPTION) await call(config, 'DELETE', `/api/webhooks/${id}`);
  }
  const { endpoint } = await call<{ endpoint: { id: string } }>(config, 'POST', '/api/webhooks', {
    url,
    description: DESCRIPTION,
    event_types: ['pill.published'],
    symbols: [config.symbol],
  });
  return endpoint.id;
}

async function call<T>(
  { apiUrl, key }: CanaryConfig,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  json?: object,
): Promise<T> {
  const { statusCode, body } = await request(`${apiUrl}${path}`, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: json === undefined ? null : JSON.stringify(json),
    headersTimeout: 5_000,
    bodyTimeout: 5_000,
  });
  const text = await body.text();
  if (statusCode >= 300) throw new Error(`${method} ${path} answered ${statusCode}: ${text}`);
  return JSON.parse(text) as T;
}

/** @returns undefined if the body is too long */
async function readBody(message: AsyncIterable<Buffer>): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
