import { execFile } from 'node:child_process';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AccountApi, openAccountApi } from '../../gateway/api/testing/account-api.ts';
import type { Customer } from '../../gateway/api/testing/customer.ts';
import {
  type Decoy,
  expectStatus,
  openDecoy,
  register,
  type SignatureScheme,
  send,
  switchOn,
} from '../../gateway/api/testing/schemes.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { makePython } from '../../testing/python.ts';
import { waitFor } from '../../testing/wait.ts';
import { type Auth, bearerTokens, createClient, signRequests } from '../index.ts';

/** Between two pills, so that the test does not fill the machine. */
const PACE_MS = 20;
const ALGORITHMS = ['ed25519', 'ecdsa-p256-sha256', 'hmac-sha256'] as const;
const PYTHON = path.join(packageRoot, 'sdk/python');

const run = promisify(execFile);

let accounts: AccountApi;
let customer: Customer;
let issuer: Decoy;
let stream: TestProcess;
let writer: PillWriter;
let streamUrl: string;
let python: string;
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' });

beforeAll(async () => {
  const made = await makePython(path.join(PYTHON, 'requirements.txt'));
  if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
  ({ python } = made);
  const env = { WEBHOOK_ALLOW_LOOPBACK: 'true' };
  accounts = await openAccountApi(env);
  const jwk = { kid: 'k', ...(await exportJWK(key.publicKey)) };
  issuer = await openDecoy((response) => response.end(JSON.stringify({ keys: [jwk] })));
  writer = await openPillWriter(accounts.namespace);
  const port = String(await getPort());
  streamUrl = `ws://127.0.0.1:${port}`;
  stream = await startProcess('gateway/stream/main.js', [], {
    ...{ ...accounts.namespace.env, ...env, STREAM_PORT: port },
  });
  customer = await accounts.customer('firm', 'institutional');
  await stream.ready();
  // The first run installs the packages of Python.
}, 900_000);

afterAll(async () => {
  await writer?.close();
  await stream?.stop();
  await accounts?.close();
  await issuer?.close();
});

const turnOn = (auth: Auth, id: string) =>
  switchOn(customer, accounts.base, id, async (url) => ({
    ...(await auth({ method: 'GET', url })),
  }));

/** A scheme that is on, and the TypeScript client's signer of it. */
async function signer(algorithm: (typeof ALGORITHMS)[number]) {
  const scheme = await register(customer, algorithm);
  const { id: schemeId, key: own } = scheme;
  const auth =
    own.algorithm === 'hmac-sha256'
      ? signRequests({ schemeId, algorithm: 'hmac-sha256', secret: own.secret.toString('base64') })
      : signRequests({ schemeId, algorithm: own.algorithm, privateKey: own.privateKey });
  await turnOn(auth, schemeId);
  return { auth, scheme };
}

/** The symbol of the next pill. */
async function readPill(auth: Auth, symbol: string): Promise<string> {
  const { base: apiUrl } = accounts;
  const pills = createClient({ apiUrl, streamUrl, auth }).stream({ symbols: symbol });
  return whileWriting(symbol, async () => {
    for await (const item of pills) if (item.type === 'pill') return item.symbol;
    throw new Error('The stream ended.');
  });
}

/** Reads, while a pill of the symbol is written again and again. */
async function whileWriting<T>(symbol: string, read: () => Promise<T>): Promise<T> {
  let isRead = false;
  const writing = (async () => {
    while (!isRead) {
      await writer.write([makePill({ symbol })]);
      await sleep(PACE_MS);
    }
  })();
  try {
    return await read();
  } finally {
    isRead = true;
    await writing;
  }
}

test.each(ALGORITHMS)(
  'a client that signs with %s is let in by the API, with a body too, and by the stream',
  async (algorithm) => {
    const { auth } = await signer(algorithm);
    const { base } = accounts;
    const client = createClient({ apiUrl: base, auth });
    expect((await client.account()).tier).toBe('institutional');
    const url = `${base}/api/support`;
    const body = JSON.stringify({ subject: 'hello', message: algorithm });
    const headers = { ...(await auth({ method: 'POST', url, body })) };
    expectStatus(await send(url, headers, { method: 'POST', body }), 202);
    expect(await readPill(auth, 'SIGN.T')).toBe('SIGN.T');
  },
);

/** What `tests/prove.py` of the Python client shows. */
async function provePython(symbol: string, proof: object): Promise<object> {
  return whileWriting(symbol, async () => {
    const env = { ...process.env, PYTHONPATH: path.join(PYTHON, 'src') };
    const script = path.join(PYTHON, 'tests/prove.py');
    const proving = run(python, [script], { env, timeout: 240_000 });
    const urls = { api_url: accounts.base, stream_url: streamUrl };
    proving.child.stdin!.end(JSON.stringify({ ...urls, symbol, ...proof }));
    return JSON.parse((await proving).stdout);
  });
}

function pythonSigning({ id, key: own }: SignatureScheme): object {
  const shared = { scheme_id: id, algorithm: own.algorithm };
  return own.algorithm === 'hmac-sha256'
    ? { ...shared, secret: own.secret.toString('base64') }
    : { ...shared, private_key: own.privateKey.export({ format: 'pem', type: 'pkcs8' }) };
}

test.each(ALGORITHMS)('the Python client is let in with %s too', async (algorithm) => {
  const { scheme } = await signer(algorithm);
  const message = JSON.stringify({ subject: 'hello', message: `署名 ${algorithm}` });
  const proof = { signing: pythonSigning(scheme), message };
  expect(await provePython('PYTHON.T', proof)).toEqual({
    ...{ tier: 'institutional', latest: ['PYTHON.T'], support: 202, pill: 'PYTHON.T' },
  });
});

test('the Python client is let in with a token', async () => {
  const scheme = await registerTokens();
  const token = await tokenFor(scheme, key.privateKey, 600);
  await turnOn(
    bearerTokens(() => token),
    scheme,
  );
  expect(await provePython('PYTHON.T', { token })).toEqual({
    ...{ tier: 'institutional', latest: ['PYTHON.T'], pill: 'PYTHON.T' },
  });
});

test('a stream whose token ends goes on with the next token, and misses nothing', async () => {
  const scheme = await registerTokens();
  let endsInS = 60;
  const issued: number[] = [];
  const auth = bearerTokens(() => {
    issued.push(endsInS);
    return tokenFor(scheme, key.privateKey, endsInS);
  });
  await turnOn(auth, scheme);
  issued.length = 0;
  endsInS = 2;
  const { base: apiUrl } = accounts;
  const client = createClient({ apiUrl, streamUrl, auth });
  expect((await client.account()).tier).toBe('institutional');
  const pills = client.stream({ symbols: 'TOKEN.T', snapshot: false });
  const endings: string[] = [];
  pills.on('reconnecting', ({ error }) => void endings.push(error.code));
  const read: string[] = [];
  const reading = (async () => {
    for await (const item of pills) {
      if (item.type === 'gap') throw new Error('The stream reports a gap.');
      if (item.type === 'pill') read.push(item.id);
    }
  })();
  await waitFor('the stream', () => pills.state === 'live');
  const sent: string[] = [];
  while (!(endings.length >= 2 && pills.state === 'live')) {
    const pill = makePill({ symbol: 'TOKEN.T' });
    await writer.write([pill]);
    sent.push(pill.id);
    await sleep(PACE_MS);
  }
  await waitFor(
    'every pill',
    () => read.length === sent.length || `${read.length} of ${sent.length}`,
  );
  pills.close();
  await reading;
  expect(read).toEqual(sent);
  expect(new Set(endings)).toEqual(new Set(['credential_expired']));
  expect(issued.length).toBeGreaterThanOrEqual(4);
});

function tokenFor(scheme: string, by: KeyObject, endsInS: number): Promise<string> {
  return new SignJWT({ scope: 'read stream' })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .setIssuer('https://id.firm.example/')
    .setAudience(scheme)
    .setExpirationTime(Math.floor(Date.now() / 1_000) + endsInS)
    .sign(by);
}

async function registerTokens(): Promise<string> {
  const made = await customer.send('POST', '/api/manager/authentication/token-schemes', {
    ...{ name: 'tokens', issuer: 'https://id.firm.example/', jwks_url: issuer.url },
    ...{ algorithms: ['ES256'], scopes: ['read', 'stream'], scope_claim: 'scope' },
  });
  return expectStatus(made, 201).body.scheme.id;
}
