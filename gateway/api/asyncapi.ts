import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { packageRoot } from '../../lib/root.ts';

interface Document {
  readonly servers: { readonly stream: object };
}

/** Kept beside the stream, and held equal to its schemas by a test there. */
const FILE = path.join(packageRoot, 'gateway/stream/contract/asyncapi.json');

/** Adds `GET /asyncapi.json`: the AsyncAPI document of the stream, with its address here. */
export async function addAsyncApi(app: FastifyInstance, streamUrl: string): Promise<void> {
  const document: Document = JSON.parse(await readFile(FILE, 'utf8'));
  const { host, protocol, pathname } = new URL(streamUrl);
  const stream = {
    ...document.servers.stream,
    ...{ host, protocol: protocol.slice(0, -1) },
    ...(pathname === '/' ? {} : { pathname }),
  };
  const answer = { ...document, servers: { stream } };
  const config = { access: { by: 'nobody' } } as const;
  app.get('/asyncapi.json', { config, schema: { hide: true } }, () => answer);
}
