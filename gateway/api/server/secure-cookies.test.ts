import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';

let accounts: AccountApi;
/** The same service, reached by customers over TLS; the proxy in front is left out. */
let secure: Customer;

beforeAll(async () => {
  accounts = await openAccountApi();
  const base = await accounts.start({ PUBLIC_URL: 'https://127.0.0.1:8443' });
  await accounts.customer('ann');
  secure = accounts.stranger('ann', base);
});

afterAll(() => accounts?.close());

test('over TLS the cookie is bound to the host, and browsers stay on TLS', async () => {
  const signedIn = await secure.signIn();
  expect(signedIn.status).toBe(200);
  const cookie = String(signedIn.headers['set-cookie']);
  expect(cookie).toMatch(/^__Host-pillole_session=[\w-]{43}; /);
  expect(cookie.split('; ').slice(1).sort()).toEqual([
    'HttpOnly',
    'Max-Age=1209600',
    'Path=/',
    'SameSite=Lax',
    'Secure',
  ]);
  for (const path of ['/api/session', '/api/status', '/none', '/problems']) {
    const { headers } = await secure.send('GET', path);
    expect([path, headers['strict-transport-security']]).toEqual([path, 'max-age=31536000']);
  }
  const { body } = await secure.send('GET', '/openapi.json');
  expect(body.components.securitySchemes.session.name).toBe('__Host-pillole_session');
});

test('over TLS a cookie without the prefix, which a neighbour may have set, is not read', async () => {
  await secure.signIn();
  const { cookie } = secure.credentials();
  expect((await secure.send('GET', '/api/session')).status).toBe(200);
  const downgraded = { cookie: cookie!.replace('__Host-', '') };
  const refused = await secure.send('GET', '/api/session', undefined, downgraded);
  expect([refused.status, refused.body.code]).toEqual([401, 'session_required']);
  expect(refused.headers['www-authenticate']).toContain('cookie-name="__Host-pillole_session"');
  const out = await secure.send('DELETE', '/api/session');
  expect(String(out.headers['set-cookie'])).toMatch(
    /^__Host-pillole_session=; Max-Age=0; .*Secure/,
  );
});

test('on this machine without TLS, browsers would refuse the prefix: the cookie has none', async () => {
  const bob = await accounts.customer('bob');
  const { cookie } = bob.credentials();
  expect(cookie).toMatch(/^pillole_session=/);
  const prefixed = { cookie: `__Host-${cookie}` };
  expect((await bob.send('GET', '/api/session', undefined, prefixed)).status).toBe(401);
  const { headers } = await bob.send('GET', '/api/session');
  expect(headers['strict-transport-security']).toBeUndefined();
});

test('no answer about an account is stored by caches or read as another type', async () => {
  const cara = await accounts.customer('cara', 'pro');
  const { body: document } = await cara.send('GET', '/openapi.json');
  const TAGS = ['account', 'keys', 'session', 'subscription', 'webhooks', 'manager'];
  const operations = Object.entries<Record<string, { tags: string[] }>>(document.paths).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, { tags }]) => ({ path, method, tags })),
  );
  const about = operations.filter(({ tags }) => TAGS.includes(tags[0]!));
  expect(about.length).toBeGreaterThan(40);
  for (const { path, method } of about) {
    const to = path.replaceAll(/\{\w+\}/g, 'aaaaaaaaaaaa');
    // Signed in, then not: accepted, refused and unknown alike. Nothing is changed by empty bodies.
    const isRead = method === 'get';
    const answers = [
      ...(isRead ? [await cara.send('GET', to)] : []),
      await accounts.stranger('none').send(method.toUpperCase(), to),
    ];
    for (const { headers } of answers) {
      expect([to, headers['cache-control'], headers['x-content-type-options']]).toEqual([
        to,
        'no-store',
        'nosniff',
      ]);
    }
  }
});
