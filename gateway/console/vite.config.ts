import path from 'node:path';
import { defineConfig } from 'vite';

/** The page at the API's address: `npm run build` puts it into dist/console. */
export default defineConfig({
  root: path.join(import.meta.dirname, 'page'),
  // `/` is the page itself; what it is made of has a folder beside the API's paths.
  base: '/console/',
  publicDir: false,
  logLevel: 'warn',
  build: {
    outDir: path.join(import.meta.dirname, '../../dist/console'),
    emptyOutDir: true,
    target: ['chrome116', 'firefox124', 'safari17.4'],
    // A data: address would have to be allowed by the page's policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
