import path from 'node:path';
import { defineConfig } from 'vite';

/** Builds the page at the API's address; `npm run build` writes it to dist/console. */
export default defineConfig({
  root: path.join(import.meta.dirname, 'page'),
  // `/` is the page itself; its assets have a folder of their own besides the API's paths.
  base: '/console/',
  publicDir: false,
  logLevel: 'warn',
  build: {
    outDir: path.join(import.meta.dirname, '../../dist/console'),
    emptyOutDir: true,
    target: ['chrome116', 'firefox124', 'safari17.4'],
    // The page's Content-Security-Policy does not allow data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The market page stays as light as it is for visitors; the console is a document of its own.
    rollupOptions: {
      input: ['index.html', 'app/index.html'].map((file) =>
        path.join(import.meta.dirname, 'page', file),
      ),
    },
  },
});
