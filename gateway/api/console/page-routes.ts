import { existsSync } from 'node:fs';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Log } from '../../../lib/log.ts';
import { packageRoot } from '../../../lib/root.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN } from '../access-rule.ts';
import { endpoint } from '../endpoint.ts';

/** Where `gateway/console` is built to. */
const FOLDER = path.join(packageRoot, 'dist/console');
/** The names of assets carry a hash of their content. */
const ASSET = '^[A-Za-z0-9_-]{1,64}\\.[a-z0-9]{2,5}$';
const FOREVER = 'public, max-age=31536000, immutable';

export interface PageOptions {
  /** Where pages open sockets. */
  readonly streamUrl: string;
  /** Whether demo tickets are given out. */
  readonly hasDemo: boolean;
  readonly log: Log;
}

/**
 * The page at the API's address, its assets and its settings. Without a build of it the API serves
 * all else.
 */
export function addPageRoutes(app: FastifyInstance, options: PageOptions): void {
  const { streamUrl, hasDemo, log } = options;
  if (!existsSync(path.join(FOLDER, 'index.html'))) {
    log.warn({ folder: FOLDER }, 'there is no page here; build it with: npm run build');
    return;
  }
  const config = { access: OPEN } as const;
  const schema = { hide: true } as const;
  // A scope of its own: the reference page has brought the same plugin.
  app.register(async (page) => {
    await page.register(fastifyStatic, { root: FOLDER, serve: false, cacheControl: false });
    page.get('/', { config, schema }, (_request, reply) =>
      harden(reply)
        .header('content-security-policy', contentPolicy(streamUrl))
        .header('cache-control', 'no-cache')
        .sendFile('index.html'),
    );
    const params = Type.Object({ name: Type.String({ pattern: ASSET }) });
    page.get<{ Params: { name: string } }>(
      '/console/assets/:name',
      { config, schema: { ...schema, params } },
      ({ params: { name } }, reply) => {
        // Its own answer: the server's would say that the method is wrong.
        if (!existsSync(path.join(FOLDER, 'assets', name)))
          return refuse(reply, 'object_not_found');
        return harden(reply).header('cache-control', FOREVER).sendFile(`assets/${name}`);
      },
    );
  });
  app.route(
    endpoint({
      method: 'GET',
      url: '/console/settings',
      tag: 'service',
      summary: 'What the page at this address needs to know',
      access: OPEN,
      answers: {
        200: {
          description: '`demo`: whether POST /api/stream/demo-tickets gives tickets out.',
          schema: Type.Object({ stream_url: Type.String(), demo: Type.Boolean() }),
          example: { stream_url: 'ws://127.0.0.1:8082', demo: false },
        },
      },
      handle(_request, reply) {
        reply.header('cache-control', 'no-store');
        return { stream_url: streamUrl, demo: hasDemo };
      },
    }),
  );
}

/** Nothing but what the page itself is made of, and the stream. */
function contentPolicy(streamUrl: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self' ${new URL(streamUrl).origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
}

function harden(reply: FastifyReply): FastifyReply {
  return reply
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'no-referrer')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin');
}
