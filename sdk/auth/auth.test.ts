import { generateKeyPairSync } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { createClient as createBrowserClient } from '../browser.ts';
import { createClient } from '../index.ts';
import { welcome } from '../testing/scripted-frames.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';
import { bearerTokens } from './auth.ts';
import { signRequests } from './sign-requests.ts';

const fixture = useScriptedServer();
const SCHEME = 'aut_k3yq7v2bqm9c';
const ed25519 = generateKeyPairSync('ed25519');
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const signing = () =>
  signRequests({ schemeId: SCHEME, algorithm: 'ed25519', privateKey: ed25519.privateKey });

/** Answers 200 from the `failures`-th request on, and keeps what was sent. */
function answerAfter(failures: number): IncomingMessage[] {
  const seen: IncomingMessage[] = [];
  fixture.server.answer((_url, request) => {
    seen.push(request);
    return seen.length > failures ? { body: {} } : { status: 503, body: '' };
  });
  return seen;
}

describe('requests', () => {
  test('are signed anew for each attempt, with a nonce that never repeats', async () => {
    const seen = answerAfter(2);
    await createClient({ apiUrl: fixture.server.httpUrl, auth: signing() }).account();
    const inputs = seen.map(({ headers }) => String(headers['signature-input']));
    expect(inputs).toHaveLength(3);
    const form =
      /^sig1=\("@method" "@target-uri"\);created=\d+;keyid="aut_k3yq7v2bqm9c";nonce="([^"]{24})"$/;
    expect(new Set(inputs.map((input) => form.exec(input)?.[1])).size).toBe(3);
    expect(inputs.every((input) => form.test(input))).toBe(true);
    expect(seen[0]!.headers).not.toHaveProperty('x-api-key');
  });

  test('carry a new token each time', async () => {
    const seen = answerAfter(1);
    let made = 0;
    const auth = bearerTokens(async () => `eyJ.${++made}.x`);
    await createClient({ apiUrl: fixture.server.httpUrl, auth }).account();
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer eyJ.1.x',
      'Bearer eyJ.2.x',
    ]);
  });

  test('with a body are signed with its digest', async () => {
    const seen = answerAfter(0);
    const file = path.join(os.tmpdir(), `pillole-auth-${process.pid}`);
    const client = createClient({ apiUrl: fixture.server.httpUrl, auth: signing() });
    const range = { from: '2026-11-20T00:00:00Z', to: '2026-11-21T00:00:00Z', path: file };
    await client.export(range).catch(() => undefined);
    await rm(file, { force: true });
    const { headers } = seen.find(({ method }) => method === 'POST')!;
    expect(headers['signature-input']).toContain('("@method" "@target-uri" "content-digest")');
    expect(headers['content-digest']).toMatch(/^sha-256=:[\w+/]{43}=:$/);
  });

  test('are repeated after a token that could not be had, and then fail with auth_failed', async () => {
    let asked = 0;
    const auth = bearerTokens(() => {
      asked += 1;
      throw new Error('the issuer is away');
    });
    const client = createClient({ apiUrl: fixture.server.httpUrl, auth });
    await expect(client.account()).rejects.toMatchObject({
      ...{ code: 'auth_failed', retry: 'after', message: 'the issuer is away' },
    });
    expect([asked, fixture.server.requests]).toEqual([3, []]);
  });

  test('have a key or auth, not both', async () => {
    const client = createClient({
      ...{ apiUrl: fixture.server.httpUrl, key: 'pil_live_key', auth: signing() },
    });
    await expect(client.account()).rejects.toMatchObject({ code: 'not_configured' });
  });
});

describe('streams', () => {
  test('prove each connection in the handshake, and send no auth frame', async () => {
    let made = 0;
    fixture.open({}, { key: undefined, auth: bearerTokens(() => `eyJ.${++made}.x`) });
    const first = await fixture.server.connection();
    expect(first.headers.authorization).toBe('Bearer eyJ.1.x');
    first.send(welcome());
    expect(await first.next('subscribe')).toMatchObject({ symbols: ['7203.T'] });
    first.close(4004);
    const second = await fixture.server.connection();
    expect(second.headers.authorization).toBe('Bearer eyJ.2.x');
  });

  test('keep trying while no token can be had', async () => {
    let asked = 0;
    const auth = bearerTokens(() => {
      asked += 1;
      if (asked < 3) throw new Error('the issuer is away');
      return 'eyJ.3.x';
    });
    fixture.open({ reconnectMaxMs: 1 }, { key: undefined, auth });
    const { headers } = await fixture.server.connection();
    expect(headers.authorization).toBe('Bearer eyJ.3.x');
  });

  test('in a browser need a ticket, since a WebSocket there sends no headers', () => {
    const { streamUrl } = fixture.server;
    const webSocket = class {} as never;
    const client = createBrowserClient({ streamUrl, auth: bearerTokens(() => 'x'), webSocket });
    expect(() => client.stream({ symbols: '7203.T' })).toThrow(/set `ticket`/);
  });
});

describe('signRequests refuses', () => {
  const of = { schemeId: SCHEME, algorithm: 'ed25519', privateKey: ed25519.privateKey } as const;
  test.each([
    ['an id that is no scheme', { ...of, schemeId: 'key_1' }, /schemeId/],
    ['a key of another algorithm', { ...of, privateKey: p256.privateKey }, /not a key for ed25519/],
    ['text that is no PEM', { ...of, privateKey: 'MIIsecret' }, /in PEM/],
    ['a secret that was cut', { ...of, algorithm: 'hmac-sha256', secret: 'YWJj' }, /secret must/],
  ])('%s, and does not quote the key', (_name, options, message) => {
    expect(() => signRequests(options as never)).toThrow(message);
    expect(() => signRequests(options as never)).not.toThrow(/MIIsecret|YWJj/);
  });
});

test('signRequests takes a key in PEM', async () => {
  const privateKey = String(ed25519.privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const auth = signRequests({ schemeId: SCHEME, algorithm: 'ed25519', privateKey });
  expect(await auth({ method: 'GET', url: 'https://a.example/' })).toHaveProperty('signature');
});
