import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace } from '../../testing/namespace.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

/** The API serves the page; no market and no browser are needed. */
let api: TestProcess;
let url: string;

beforeAll(async () => {
  const namespace = await createNamespace();
  const db = openTestDatabase(namespace);
  const account = await createTestAccount(db, namespace, { tier: 'pro' });
  await db.destroy();
  const port = String(await getPort());
  url = `http://127.0.0.1:${port}/`;
  const env = { API_PORT: port, DEMO_ACCOUNT_ID: account.id, STREAM_URL: 'ws://127.0.0.1:1' };
  api = await startProcess('gateway/api/main.js', [], { ...namespace.env, ...env });
  await api.ready();
});

afterAll(() => api?.stop());

/** Asks again while the answer is 503, as of a PostgreSQL that is busy with other tests. */
const ask = (path: string, method: 'GET' | 'POST' = 'GET') =>
  waitFor(`an answer to ${path}`, async () => {
    const { statusCode: status, headers, body } = await request(new URL(path, url), { method });
    const text = await body.text();
    return status !== 503 && { status, headers, text };
  });

describe('assets of the page', () => {
  test('a strict policy, an index that is revalidated, assets that are cached forever', async () => {
    const index = await request(url);
    const policy = String(index.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect(index.headers['cache-control']).toBe('no-cache');
    const html = await index.body.text();
    const again = await request(url, {
      headers: { 'if-none-match': String(index.headers.etag) },
    });
    await again.body.dump();
    expect(again.statusCode).toBe(304);
    const assets = [...html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)];
    expect(assets.length).toBeGreaterThanOrEqual(3);
    for (const [, path] of assets) {
      const asset = await request(new URL(path!, url));
      expect(asset.statusCode).toBe(200);
      expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      expect(asset.headers['x-content-type-options']).toBe('nosniff');
      await asset.body.dump();
    }
  });

  test.each(['/console/assets/none-1.js', '/console/assets/..%2findex.html', '/console/made-of'])(
    '%s is not served',
    async (path) => {
      const { statusCode, body } = await request(new URL(path, url));
      expect([400, 404]).toContain(statusCode);
      expect(await body.json()).toHaveProperty('code');
    },
  );

  test.each([
    ['/console/market?symbols=7203.T', 200],
    ['/console/market', 400],
    [`/console/market?symbols=${Array.from({ length: 101 }, (_, n) => `S${n}`).join()}`, 400],
    ['/console/demo/market/verify?symbol=7203.T', 200],
    ['/console/demo/market/verify?symbol=', 400],
    ['/console/demo/analytics/bars?symbol=7203.T&interval=2x', 400],
    ['/console/demo/account', 404],
    ['/api/market/verify?symbol=7203.T', 401],
  ])('with a demo and without a key: GET %s answers %i', async (path, status) => {
    expect((await ask(path)).status).toBe(status);
  });

  test('anyone may get a demo ticket, which is never cached', async () => {
    const path = '/api/stream/demo-tickets';
    const given = await ask(path, 'POST');
    expect(given.status).toBe(201);
    expect(given.headers['cache-control']).toBe('no-store');
    expect(JSON.parse(given.text)).toMatchObject({ ticket: expect.stringMatching(/^pit_/) });
  });
});
