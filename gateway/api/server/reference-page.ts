import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifySwaggerUiOptions } from '@fastify/swagger-ui';
import { packageRoot } from '../../../lib/files/package-root.ts';

/** The page with the API reference. */
export const REFERENCE_PATH = '/docs';

/** Build output of `gateway/console`. */
const FOLDER = path.join(packageRoot, 'dist/console');

/** Only the page's own files; the icons of the library are data. */
const CONTENT_POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** Options of the page: our own style and a way back. Without a build the library's own style. */
export function referencePage(): FastifySwaggerUiOptions {
  const read = (filename: string) => {
    const file = path.join(FOLDER, filename);
    return existsSync(file) ? [{ filename, content: readFileSync(file, 'utf8') }] : [];
  };
  const icon = { rel: 'icon', sizes: 'any', type: 'image/svg+xml' };
  return {
    routePrefix: REFERENCE_PATH,
    staticCSP: CONTENT_POLICY,
    // Without the bar of the library, which shows another product's name.
    uiConfig: { layout: 'BaseLayout', docExpansion: 'list', defaultModelsExpandDepth: -1 },
    theme: {
      title: 'pillole: API reference',
      css: read('reference.css'),
      js: read('reference.js'),
      favicon: read('icon.svg').map((file) => ({ ...icon, ...file })),
    },
  };
}
