import { existsSync } from 'node:fs';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { packageRoot } from '../../../lib/files/package-root.ts';
import type { Log } from '../../../lib/log/log.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import type { SessionCookie } from '../server/session-cookie.ts';

/** Build output of `gateway/console`. */
const FOLDER = path.join(packageRoot, 'dist/console');
/** Asset names carry a hash of their content; a library's name may contain a dot. */
const ASSET = '^[A-Za-z0-9_-]{1,64}(\\.[A-Za-z0-9_-]{1,64})?\\.[a-z0-9]{2,5}$';
const FOREVER = 'public, max-age=31536000, immutable';

const Settings = Type.Object({
  stream_url: Type.String({ examples: ['ws://127.0.0.1:8082'] }),
  demo: Type.Boolean(),
  has_session: Type.Boolean({ examples: [false] }),
});

/**
 * Adds the web page at the API's address, its assets and its settings. Without a build of the page
 * the API serves everything else.
 * @param options.streamUrl where pages open sockets
 * @param options.hasDemo whether demo tickets are issued
 */
export function addPageRoutes(
  app: FastifyInstance,
  options: {
    readonly streamUrl: string;
    readonly hasDemo: boolean;
    readonly cookie: Pick<SessionCookie, 'tokenOf'>;
    readonly log: Log;
  },
): void {
  const { streamUrl, hasDemo, cookie, log } = options;
  if (!existsSync(path.join(FOLDER, 'index.html'))) {
    log.warn({ folder: FOLDER }, 'the web page is not built; run: npm run build');
    return;
  }
  const config = { access: OPEN } as const;
  const schema = { hide: true } as const;
  // A scope of its own, because the API reference registers the same plugin.
  app.register(async (page) => {
    await page.register(fastifyStatic, { root: FOLDER, serve: false, cacheControl: false });
    const sendPage = (reply: FastifyReply, file: string) =>
      harden(reply)
        .header('content-security-policy', contentPolicy(streamUrl))
        .header('cache-control', 'no-cache')
        .sendFile(file);
    page.get('/', { config, schema }, (_request, reply) => sendPage(reply, 'index.html'));
    // The console finds its page by the path.
    for (const path of ['/app', '/app/*']) {
      page.get(path, { config, schema }, (_request, reply) => sendPage(reply, 'app/index.html'));
    }
    const params = Type.Object({ name: Type.String({ pattern: ASSET }) });
    page.get<{ Params: { name: string } }>(
      '/console/assets/:name',
      { config, schema: { ...schema, params } },
      ({ params: { name } }, reply) => {
        // The static server would answer that the method is not allowed.
        if (!existsSync(path.join(FOLDER, 'assets', name)))
          return refuse(reply, 'object_not_found');
        return harden(reply).header('cache-control', FOREVER).sendFile(`assets/${name}`);
      },
    );
  });
  app.route(
    defineRoute({
      method: 'GET',
      url: '/console/settings',
      tag: 'service',
      summary: 'Settings of the web page at this address',
      access: OPEN,
      answers: {
        200: answerOf(
          '`demo`: whether POST /api/stream/demo-tickets issues tickets. `has_session`: whether ' +
            'the browser sent a session, which may have ended.',
          Settings,
        ),
      },
      handle(request, reply) {
        reply.header('cache-control', 'no-store');
        const hasSession = cookie.tokenOf(request) !== undefined;
        return { stream_url: streamUrl, demo: hasDemo, has_session: hasSession };
      },
    }),
  );
}

/** Allows only the page's own files and the stream. */
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
