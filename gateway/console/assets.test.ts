import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { useVisits } from './testing/visits.ts';

const { place } = useVisits(async () => undefined);

describe('the way to the page', () => {
  test('a strict policy, an index that is asked for again, assets that never are', async () => {
    const index = await request(place().url);
    const policy = String(index.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect(index.headers['cache-control']).toBe('no-cache');
    const html = await index.body.text();
    const again = await request(place().url, {
      headers: { 'if-none-match': String(index.headers.etag) },
    });
    expect(again.statusCode).toBe(304);
    const assets = [...html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)];
    expect(assets.length).toBeGreaterThanOrEqual(3);
    for (const [, path] of assets) {
      const asset = await request(new URL(path!, place().url));
      expect(asset.statusCode).toBe(200);
      expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      expect(asset.headers['x-content-type-options']).toBe('nosniff');
      await asset.body.dump();
    }
  });

  test.each(['/console/assets/none-1.js', '/console/assets/..%2findex.html', '/console/made-of'])(
    '%s is no part of it',
    async (path) => {
      const { statusCode, body } = await request(new URL(path, place().url));
      expect([400, 404]).toContain(statusCode);
      expect(await body.json()).toHaveProperty('code');
    },
  );

  test('a demo ticket is given to whoever asks, and kept by nobody', async () => {
    const path = '/api/stream/demo-tickets';
    const given = await request(new URL(path, place().url), { method: 'POST' });
    expect(given.statusCode).toBe(201);
    expect(given.headers['cache-control']).toBe('no-store');
    expect(await given.body.json()).toMatchObject({ ticket: expect.stringMatching(/^pit_/) });
  });
});
