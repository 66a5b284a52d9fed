import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { type FrontProxy, openFrontProxy, proxyHeader } from '../../testing/front-proxy.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import {
  closeRawClients,
  handshakeText,
  openRaw,
  type RawClient,
} from './conformance/testing/raw-client.ts';
import { startStream } from './testing/start-stream.ts';
import { closeClients, enter } from './testing/stream-client.ts';

const CUSTOMER = '203.0.113.7';
const CUSTOMER_V6 = '2001:db8:7::7';
const STRANGER = '198.51.100.7';

let namespace: Namespace;
let db: Database;
/** Trusts the proxies of this machine. */
let stream: TestProcess;
/** Trusts proxies elsewhere only. */
let wary: TestProcess;
let port: number;
let waryPort: number;
const proxies: FrontProxy[] = [];

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  const start = (TRUSTED_PROXIES: string) => startStream({ ...namespace.env, TRUSTED_PROXIES });
  const [here, elsewhere] = await Promise.all([start('127.0.0.1'), start('10.0.0.0/8')]);
  stream = here.stream;
  wary = elsewhere.stream;
  port = Number(new URL(here.url).port);
  waryPort = Number(new URL(elsewhere.url).port);
});

afterEach(() => {
  closeClients();
  closeRawClients();
  for (const proxy of proxies.splice(0)) proxy.close();
});

afterAll(async () => {
  await Promise.all([stream?.stop(), wary?.stop()]);
  await db?.destroy();
});

const allowed = [`${CUSTOMER}/32`, '2001:db8:7::/48'];
const account = (allowCidrs: readonly string[] = []) =>
  createTestAccount(db, namespace, { tier: 'institutional', allowCidrs });

function proxyOf(...kindAndPort: Parameters<typeof openFrontProxy>): FrontProxy {
  const proxy = openFrontProxy(...kindAndPort);
  proxies.push(proxy);
  return proxy;
}

/** The first frame for a client with the key: `welcome`, or the code of the refusal. */
async function answerFor(at: number, key: string, headers: Record<string, string> = {}) {
  const { answer } = await waitFor('an answer', async () => {
    const client = await openRaw(at);
    client.write(handshakeText({ headers: { 'X-API-Key': key, ...headers } }));
    await client.until('a frame', () => client.frames.length > 0 || client.socket.closed);
    const { type, code } = client.frames[0] ?? { type: client.head() };
    return code !== 'accounts_unavailable' && { answer: code ?? type };
  });
  return answer;
}

describe.each(['x-forwarded-for', 'proxy-v2'] as const)('behind a proxy by %s', (kind) => {
  test.each([
    [CUSTOMER, 'welcome'],
    [CUSTOMER_V6, 'welcome'],
    [STRANGER, 'address_refused'],
    ['2001:db8:8::7', 'address_refused'],
    ['127.0.0.1', 'address_refused'],
  ])('a key of named networks, used from %s, ends in %s', async (client, answer) => {
    const { key } = await account(allowed);
    const at = await proxyOf(kind, port).portFor(client);
    expect(await answerFor(at, key)).toBe(answer);
  });

  test('a client cannot claim another address', async () => {
    const { key } = await account(allowed);
    const at = await proxyOf(kind, port).portFor(STRANGER);
    const claim = { 'X-Forwarded-For': CUSTOMER };
    expect(await answerFor(at, key, claim)).toBe('address_refused');
  });

  test('a proxy that the process does not trust counts as the client', async () => {
    const { key } = await account(allowed);
    const own = await account(['127.0.0.1/32']);
    const at = await proxyOf(kind, waryPort).portFor(CUSTOMER);
    expect(await answerFor(at, key)).toBe('address_refused');
    expect(await answerFor(at, own.key)).toBe('welcome');
    expect(wary.output()).toContain('127.0.0.1 is not in TRUSTED_PROXIES');
  });

  test('the account sees the address of the client in its list of sockets', async () => {
    const { id, key } = await account();
    const at = await proxyOf(kind, port).portFor(CUSTOMER_V6);
    await enter(`ws://127.0.0.1:${at}/api/stream`, { key });
    const addresses = db
      .selectFrom('stream_sessions')
      .select('address')
      .where('account_id', '=', id);
    await waitFor('the row', async () => (await addresses.execute()).length > 0);
    expect(await addresses.execute()).toEqual([{ address: CUSTOMER_V6 }]);
  });

  test('sockets without a credential count for their true address', async () => {
    // The test is the proxy: thousands of sockets through one of this process would take too long.
    const open = async (client: string) => {
      const raw = await openRaw(port);
      if (kind === 'proxy-v2') raw.write(proxyHeader(client), handshakeText());
      else raw.write(handshakeText({ headers: { 'X-Forwarded-For': client } }));
      return raw;
    };
    const { key } = await account();
    const idle: RawClient[] = [];
    await waitFor('a refusal', async () => {
      idle.push(...(await Promise.all(Array.from({ length: 50 }, () => open('192.0.2.1')))));
      return idle.some(({ frames }) => String(frames[0]?.message).includes('from your address'));
    });
    const { frame } = await waitFor('an answer for the neighbour', async () => {
      const neighbour = await open('192.0.2.2');
      // RFC 6455 section 4.1: a client sends frames after the handshake is answered.
      await neighbour.until('the handshake', () => neighbour.head() !== '');
      // All clients share a rate of handshakes.
      if (!neighbour.head().includes(' 101 ')) return neighbour.head();
      neighbour.send({ op: 'auth', key });
      await neighbour.until('a frame', () => neighbour.frames.length > 0);
      const frame = neighbour.frames[0];
      return frame?.code !== 'accounts_unavailable' && { frame };
    });
    expect(frame, JSON.stringify(frame)).toMatchObject({ type: 'welcome' });
  });
});

/** A client behind a proxy of bytes speaks to the process directly, so it can send PROXY headers too. */
describe('a PROXY header of the client itself', () => {
  const health = 'GET /health HTTP/1.1\r\nHost: stream.test\r\n\r\n';
  const plain = 'GET /api/stream HTTP/1.1\r\nHost: stream.test\r\n\r\n';
  const post = 'POST /x HTTP/1.1\r\nHost: stream.test\r\nContent-Length: 2\r\n\r\nhi';

  test.each([
    ['at the beginning', []],
    ['after an answer', [health]],
    ['after a refusal', [plain]],
    ['after a body', [post]],
  ])('%s opens no socket', async (_when, before) => {
    const { key } = await account(allowed);
    const handshake = handshakeText({ headers: { 'X-API-Key': key } });
    const at = await proxyOf('proxy-v2', port).portFor(STRANGER);
    const fast = await openRaw(at);
    fast.write(...before, proxyHeader(CUSTOMER), handshake);
    const slow = await openRaw(at);
    for (const part of before) {
      slow.write(part);
      await slow.until('an answer', () => slow.head() !== '');
    }
    slow.write(proxyHeader(CUSTOMER), handshake);
    for (const client of [fast, slow]) {
      await client.ended;
      expect(client.head()).not.toContain('101 Switching Protocols');
      expect(client.frames).toEqual([]);
    }
  });
});

async function openIdle(at: number, headers: Record<string, string> = {}): Promise<RawClient> {
  const client = await openRaw(at);
  client.write(handshakeText({ headers }));
  await client.until('an answer', () => client.head() !== '' || client.socket.closed);
  return client;
}

const isOpen = ({ head, frames }: RawClient) => head().includes(' 101 ') && frames.length === 0;

test('thousands of idle handshakes from a few addresses shut no client out', async () => {
  const { key } = await account();
  let handshakes = 0;
  let isFlooding = true;
  const idle = new Set<RawClient>();
  const floods = Array.from({ length: 40 }, async (_, i) => {
    // The test is the proxy that the process trusts.
    const headers = { 'X-Forwarded-For': `192.0.2.${10 + (i % 4)}` };
    while (isFlooding) {
      const client = await openIdle(port, headers);
      handshakes += 1;
      if (!isOpen(client)) client.abort();
      else {
        idle.add(client);
        void client.ended.then(() => idle.delete(client));
      }
    }
  });
  try {
    const full = () => handshakes > 3_000 && [...idle].filter(isOpen).length > 900;
    await waitFor('the room to be full', full);
    for (let i = 0; i < 20; i += 1) {
      expect(await answerFor(port, key, { 'X-Forwarded-For': CUSTOMER })).toBe('welcome');
    }
    // The rate of handshakes without a credential may be used up: such a client tries again.
    await waitFor('a socket that sends its key in the first frame', async () => {
      const client = await openIdle(port, { 'X-Forwarded-For': CUSTOMER });
      if (client.socket.closed || !isOpen(client)) return client.head();
      client.send({ op: 'auth', key });
      await client.until('a frame', () => client.frames.length > 0);
      expect(client.frames[0]).toMatchObject({ type: 'welcome' });
      return true;
    });
  } finally {
    isFlooding = false;
    await Promise.all(floods);
  }
});
