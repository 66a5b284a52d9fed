import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { OPEN } from './access-rule.ts';

/** Kept beside the stream, where a test holds it equal to the schemas. */
const FILE = path.join(packageRoot, 'gateway/stream/protocol/asyncapi.json');

/** Adds `GET /asyncapi.json`: the AsyncAPI document of the stream, with its actual addresses. */
export async function addAsyncApi(
  app: FastifyInstance,
  urls: { readonly stream: string; readonly dedicated: string },
): Promise<void> {
  const document: { servers: { stream: object; dedicated: object } } = JSON.parse(
    await readFile(FILE, 'utf8'),
  );
  const servers = {
    stream: { ...document.servers.stream, ...addressOf(urls.stream) },
    dedicated: {
      ...document.servers.dedicated,
      ...addressOf(urls.dedicated),
      variables: variablesOf(urls.dedicated),
    },
  };
  const answer = { ...document, servers };
  const options = { config: { access: OPEN }, schema: { hide: true } };
  app.get('/asyncapi.json', options, () => answer);
}

/** By text, because the placeholders of DEDICATED_URL are part of host and path. */
function addressOf(url: string) {
  const [, protocol, host, pathname] = /^(\w+):\/\/([^/]+)(\/.*?)?\/?$/.exec(url)!;
  return { host, protocol, ...(pathname === undefined ? {} : { pathname }) };
}

/** The placeholders of DEDICATED_URL. */
function variablesOf(template: string) {
  const named = ['name', 'port'].filter((name) => template.includes(`{${name}}`));
  return Object.fromEntries(
    named.map((name) => [name, { description: `The \`${name}\` of the socket.` }]),
  );
}
