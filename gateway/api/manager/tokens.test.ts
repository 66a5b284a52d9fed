import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { exportJWK, type JWTPayload, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';
import {
  type Decoy,
  expectStatus,
  openDecoy,
  openTrial,
  pem,
  send,
  switchOn,
} from '../testing/schemes.ts';

const ROOT = '/api/manager/authentication';
const ISSUER = 'https://id.firm.example/';
const ACCOUNT = '/api/account';

let accounts: AccountApi;
let base: string;
let customer: Customer;
let issuer: Decoy;
let stream: TestProcess;
let streamUrl: string;
let scheme: string;

interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const ecKey = (kid: string): IssuerKey => ({
  ...{ kid, alg: 'ES256' },
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }),
});
const rsaKey = (kid: string): IssuerKey => ({
  ...{ kid, alg: 'RS256' },
  ...generateKeyPairSync('rsa', { modulusLength: 2_048 }),
});
const first = ecKey('first');
const rsa = rsaKey('rsa');

async function jwksOf(keys: readonly IssuerKey[]): Promise<string> {
  const all = keys.map(async ({ kid, publicKey }) => ({ kid, ...(await exportJWK(publicKey)) }));
  return JSON.stringify({ keys: await Promise.all(all) });
}

interface TokenOptions {
  readonly key?: IssuerKey;
  readonly claims?: JWTPayload;
  readonly audience?: string | string[];
  readonly issuer?: string;
  readonly endsInS?: number | undefined;
  readonly header?: object;
}

function tokenOf({ key = first, claims = {}, header = {}, ...of }: TokenOptions = {}) {
  const nowS = Math.floor(Date.now() / 1_000);
  const jwt = new SignJWT({ scope: 'read stream', ...claims })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .setIssuer(of.issuer ?? ISSUER)
    .setAudience(of.audience ?? scheme);
  const ending = 'endsInS' in of && of.endsInS === undefined;
  return (ending ? jwt : jwt.setExpirationTime(nowS + (of.endsInS ?? 300))).sign(key.privateKey);
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const ask = (token: string, path = ACCOUNT) => send(`${base}${path}`, bearer(token));
const codeOf = ({ status, body }: Awaited<ReturnType<typeof ask>>) => [status, body.code];

async function register(of: Customer, jwksUrl: string, more: object = {}): Promise<string> {
  const body = {
    ...{ name: 'tokens', issuer: ISSUER, jwks_url: jwksUrl, algorithms: ['ES256'] },
    ...{ scopes: ['read', 'stream'], scope_claim: 'scope', ...more },
  };
  const made = await of.send('POST', `${ROOT}/token-schemes`, body);
  return expectStatus(made, 201).body.scheme.id;
}

beforeAll(async () => {
  const env = { WEBHOOK_ALLOW_LOOPBACK: 'true' };
  accounts = await openAccountApi(env);
  base = accounts.base;
  const document = await jwksOf([first, rsa]);
  issuer = await openDecoy((response) => response.end(document));
  const port = await getPort();
  streamUrl = `ws://127.0.0.1:${port}`;
  stream = await startProcess('gateway/stream/main.js', [], {
    ...{ ...accounts.namespace.env, ...env },
    STREAM_PORT: String(port),
  });
  customer = await accounts.customer('firm', 'institutional');
  scheme = await register(customer, issuer.url, {
    scope_map: [{ value: 'trading', scopes: ['stream'] }],
  });
  await switchOn(customer, base, scheme, async () => bearer(await tokenOf()));
  await stream.ready();
});

const sockets = new Set<WebSocket>();
const decoys = new Set<Decoy>();
afterEach(async () => {
  for (const socket of sockets) socket.terminate();
  sockets.clear();
  for (const decoy of decoys) await decoy.close();
  decoys.clear();
});

afterAll(async () => {
  await stream?.stop();
  await accounts?.close();
  await issuer?.close();
});

async function decoyOf(answer: Decoy['answer']): Promise<Decoy> {
  const decoy = await openDecoy(answer);
  decoys.add(decoy);
  return decoy;
}

function connect(path: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(`${streamUrl}${path}`, { headers });
  sockets.add(socket);
  const frames: { type: string; code?: string }[] = [];
  socket.on('message', (data) => frames.push(JSON.parse(String(data))));
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  return { frames, closed, first: () => waitFor('a frame', () => frames[0] && { ...frames[0] }) };
}

describe('a token', () => {
  test('lets in, with the scopes that it and its scheme have', async () => {
    const whole = await ask(await tokenOf());
    expect([whole.status, whole.body.tier]).toEqual([200, 'institutional']);
    const support = await ask(await tokenOf({ claims: { scope: 'read support' } }), '/api/support');
    expect(codeOf(support)).toEqual([403, 'scope_missing']);
    const mapped = await tokenOf({ claims: { scope: ['trading', 'unknown'] } });
    expect(await connect('/api/stream', bearer(mapped)).first()).toMatchObject({ type: 'welcome' });
    expect(codeOf(await ask(mapped, '/api/symbols'))).toEqual([403, 'scope_missing']);
    const none = await tokenOf({ claims: { scope: '' } });
    expect(await connect('/api/stream', bearer(none)).closed).toBe(4501);
  });

  test('that ends closes its sockets, those opened by its tickets too', async () => {
    const token = await tokenOf({ endsInS: 4 });
    const url = `${base}/api/stream/tickets`;
    const made = await send(url, bearer(token), { method: 'POST' });
    const { ticket } = expectStatus(made, 201).body;
    const own = connect('/api/stream', bearer(token));
    const byTicket = connect(`/api/stream?ticket=${ticket}`);
    expect(await own.first()).toMatchObject({ type: 'welcome' });
    expect(await byTicket.first()).toMatchObject({ type: 'welcome' });
    expect(await Promise.all([own.closed, byTicket.closed])).toEqual([4004, 4004]);
  });

  test('of a scheme that is switched off is refused, and its socket closed', async () => {
    const own = await register(customer, issuer.url);
    const token = await tokenOf({ audience: own });
    await switchOn(customer, base, own, () => bearer(token));
    const socket = connect('/api/stream', bearer(token));
    expect(await socket.first()).toMatchObject({ type: 'welcome' });
    expectStatus(await customer.send('PATCH', `${ROOT}/schemes/${own}`, { state: 'off' }), 200);
    expect(await socket.closed).toBe(4502);
    await waitFor('the token to be refused', async () => (await ask(token)).status === 401);
  });

  test('of a suspended account is refused like its keys', async () => {
    const other = await accounts.customer('suspended', 'institutional');
    const own = await register(other, issuer.url);
    const token = await tokenOf({ audience: own });
    await switchOn(other, base, own, () => bearer(token));
    const socket = connect('/api/stream', bearer(token));
    expect(await socket.first()).toMatchObject({ type: 'welcome' });
    const { id } = (await other.send('GET', '/api/account')).body;
    const db = openTestDatabase(accounts.namespace);
    const update = db.updateTable('accounts').set({ status: 'suspended' });
    await update.where('id', '=', id).execute();
    await db.destroy();
    expect(await socket.closed).toBe(4510);
    await waitFor('the token to be refused', async () => {
      const { status, body } = await ask(token, '/api/symbols');
      return (status === 403 && body.code === 'account_suspended') || JSON.stringify(body);
    });
  });
});

describe('a token is refused', () => {
  const unsigned = async () => {
    const [, payload] = (await tokenOf()).split('.');
    const header = { alg: 'none', kid: first.kid };
    return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.`;
  };
  /** Signed by HMAC with what everybody can read: the public key. */
  const confused = async (secret: string) => {
    const jwt = new SignJWT({ scope: 'read' }).setIssuer(ISSUER).setAudience(scheme);
    const header = { alg: 'HS256', kid: rsa.kid };
    return jwt.setProtectedHeader(header).setExpirationTime('5m').sign(Buffer.from(secret));
  };
  test.each([
    ['with alg none', unsigned, 'access_token_malformed', 'algorithm'],
    [
      'by HMAC with the public key',
      () => confused(pem(rsa.publicKey)),
      'access_token_malformed',
      'algorithm',
    ],
    [
      'with an algorithm that the scheme lacks',
      () => tokenOf({ key: rsa }),
      'access_token_invalid',
    ],
    ['expired', () => tokenOf({ endsInS: -60 }), 'access_token_malformed', 'expiry'],
    ['without an end', () => tokenOf({ endsInS: undefined }), 'access_token_malformed', 'claims'],
    ['that lasts for days', () => tokenOf({ endsInS: 90_000 }), 'access_token_malformed', 'expiry'],
    ['of the future', () => tokenOf({ claims: { nbf: 4e9 } }), 'access_token_malformed', 'claims'],
    [
      'of another issuer',
      () => tokenOf({ issuer: 'https://evil.example/' }),
      'access_token_malformed',
      'issuer',
    ],
    [
      'for another audience',
      () => tokenOf({ audience: 'api' }),
      'access_token_malformed',
      'claims',
    ],
    [
      'for an unknown scheme',
      () => tokenOf({ audience: 'aut_aaaabbbbcccc' }),
      'access_token_invalid',
    ],
    [
      'with the key of a stranger',
      () => tokenOf({ key: { ...ecKey('first') } }),
      'access_token_invalid',
    ],
    [
      'with a key in its header',
      () => tokenOf({ key: ecKey('x'), header: { kid: 'first', jwk: {} } }),
      'access_token_invalid',
    ],
  ] as const)('%s', async (_name, make, code, check?: string) => {
    const { status, body } = await ask(await make());
    expect(status).toBe(401);
    if (code !== undefined) expect(body.code).toBe(code);
    if (check !== undefined) expect(body.check).toBe(check);
  });

  test('altered, and for the scheme of another customer', async () => {
    const [header, payload, signature] = (await tokenOf()).split('.');
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString());
    const more = Buffer.from(JSON.stringify({ ...claims, scope: 'support' })).toString('base64url');
    expect(codeOf(await ask(`${header}.${more}.${signature}`))).toEqual([
      401,
      'access_token_invalid',
    ]);
    const other = await accounts.customer('other', 'institutional');
    const key = ecKey('first');
    const document = await jwksOf([key]);
    const decoy = await decoyOf((response) => response.end(document));
    const theirs = await register(other, decoy.url);
    await switchOn(other, base, theirs, async () =>
      bearer(await tokenOf({ key, audience: theirs })),
    );
    // The same issuer and kid: only the audience tells the customers apart.
    expect(codeOf(await ask(await tokenOf({ key })))).toEqual([401, 'access_token_invalid']);
    expect(codeOf(await ask(await tokenOf({ audience: theirs })))).toEqual([
      401,
      'access_token_invalid',
    ]);
    const both = await tokenOf({ audience: [scheme, theirs] });
    expect(codeOf(await ask(both))).toEqual([401, 'access_token_malformed']);
  });
});

describe('the keys of an issuer', () => {
  /** A scheme in a trial, and what a token of it gets. */
  async function trialOf(decoy: Decoy) {
    const own = await register(customer, decoy.url);
    await openTrial(customer, own);
    const url = `${base}/api/authentication/check`;
    // A busy database may not answer in time: 503, which says nothing about the token.
    const check = (key = first) =>
      waitFor('an answer to the token', async () => {
        const { status, body } = await send(url, bearer(await tokenOf({ audience: own, key })));
        return status < 500 ? { body } : `${status} ${body?.code}`;
      }).then(({ body }) => body);
    await waitFor('the trial to be open', async () => (await check()).scheme === own);
    return { own, check };
  }

  test('are fetched once for a flood of unknown names', async () => {
    const document = await jwksOf([first]);
    const decoy = await decoyOf((response) => response.end(document));
    const { check } = await trialOf(decoy);
    const before = decoy.count();
    const flood = Array.from({ length: 50 }, (_, i) => check(ecKey(`unknown-${i}`)));
    for (const body of await Promise.all(flood)) expect(body.check).toBe('key_id');
    expect([before, decoy.count()]).toEqual([1, 1]);
  });

  test.each([
    ['hang', () => undefined],
    ['are huge', (response) => response.end(Buffer.alloc(1_000_000, ' '))],
    ['are elsewhere', (response) => response.writeHead(302, { location: issuer.url }).end()],
    ['are no JSON', (response) => response.end('<html>')],
    ['are private or symmetric', (response) => response.end(SECRETS)],
  ] satisfies [string, Decoy['answer']][])(
    'that %s let no token in, at one fetch',
    async (_name, answer) => {
      const decoy = await decoyOf(answer);
      const asked = issuer.count();
      const { own, check } = await trialOf(decoy);
      expect(await check()).toMatchObject({ ok: false, check: 'issuer_keys' });
      expect([decoy.count(), issuer.count() - asked]).toEqual([1, 0]);
      const { status } = await customer.send('PATCH', `${ROOT}/schemes/${own}`, { state: 'on' });
      expect(status).toBe(409);
    },
  );

  test.each(['http://169.254.169.254/jwks', 'https://10.0.0.1/jwks', 'file:///etc/passwd'])(
    'at %s are refused',
    async (jwksUrl) => {
      const body = { name: 'x', issuer: ISSUER, jwks_url: jwksUrl, algorithms: ['ES256'] };
      const { status } = await customer.send('POST', `${ROOT}/token-schemes`, body);
      expect(status).toBe(400);
    },
  );
});

const SECRETS = JSON.stringify({
  keys: [
    { kty: 'oct', kid: 'first', k: 'c2VjcmV0' },
    { kid: 'first', ...first.privateKey.export({ format: 'jwk' }) },
  ],
});
