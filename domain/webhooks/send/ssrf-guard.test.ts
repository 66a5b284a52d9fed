// The SSRF guard on real sockets: decoys count their connections, and there must be none.
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openResolver } from './resolve.ts';
import { type CustomerServer, openCustomerServer, pem } from './testing/customer-server.ts';
import { type Decoy, openDecoy } from './testing/decoy.ts';
import { type DnsStub, openDnsStub, type StubAnswer } from './testing/dns-stub.ts';
import { hostileUrls } from './testing/hostile-urls.ts';
import { policyOf } from './testing/policy.ts';
import { openSender, type Sender, type SendResult } from './webhook-sender.ts';

const NAME = 'hooks.example.com';
let stub: DnsStub;
/** Listens on every address of this machine. */
let decoy: Decoy;
let sender: Sender;
let endpoints = 0;

beforeAll(async () => {
  stub = await openDnsStub();
  decoy = await openDecoy('::');
});
afterAll(async () => {
  await decoy.close();
  await stub.close();
});
afterEach(() => sender?.close());

function open(options: { allowLoopback?: boolean; ports?: readonly number[]; dnsMs?: number }) {
  const { allowLoopback = false, ports = [decoy.port], dnsMs } = options;
  return openSender({
    policy: policyOf({ allowLoopback, ports }),
    resolver: openResolver({
      servers: [stub.server],
      ...(dnsMs === undefined ? {} : { timeoutMs: dnsMs }),
    }),
    ca: pem('authority'),
  });
}

/** Uses a fresh endpoint each time, so that no connection is reused. */
function post(url: string, endpointId = `whe_${++endpoints}`): Promise<SendResult> {
  return sender.send({ endpointId, url, headers: {} }, { 'webhook-id': 'msg_1' }, '{}');
}

describe('to the decoys', () => {
  let before: number;
  beforeEach(() => {
    before = decoy.connectionCount();
  });

  test.each([
    '127.0.0.1',
    '127.0.0.2',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '①②⑦.⓪.⓪.①',
    '127.0.0.1.',
    '[::1]',
    '[::ffff:7f00:1]',
    '0.0.0.0',
    'hooks.example.com@127.0.0.1',
  ])('a plain client reaches the decoy by %s, so decoys do count', async (host) => {
    const { body } = await request(`http://${host}:${decoy.port}/`);
    await body.dump();
    expect(decoy.connectionCount()).toBe(before + 1);
  });

  test('no hostile URL leads to a decoy, neither in a check nor in an attempt', async () => {
    sender = open({});
    for (const name of ['localhost', 'a.localhost', 'metadata.google.internal', NAME]) {
      stub.set(name, ['127.0.0.1']);
    }
    for (const [url, code] of hostileUrls(decoy.port)) {
      expect(await sender.check(url), url).toMatchObject({ code });
      expect(await post(url), url).toMatchObject({ kind: 'failed', reason: 'url_refused' });
    }
    expect(decoy.connectionCount()).toBe(before);
  });

  test.each([
    ['loopback', ['127.0.0.1'], 'address_refused', 'dns_address'],
    ['another loopback', ['127.0.0.2'], 'address_refused', 'dns_address'],
    ['loopback by AAAA alone', ['::1'], 'address_refused', 'dns_address'],
    ['public and loopback', ['8.8.8.8', '127.0.0.1'], 'address_refused', 'dns_address'],
    ['loopback and public', ['127.0.0.1', '8.8.8.8'], 'address_refused', 'dns_address'],
    ['public by A, loopback by AAAA', ['8.8.8.8', '::1'], 'address_refused', 'dns_address'],
    ['mapped', ['::ffff:127.0.0.1'], 'address_refused', 'dns_address'],
    ['compatible', ['::7f00:1'], 'address_refused', 'dns_address'],
    ['NAT64', ['64:ff9b::7f00:1'], 'address_refused', 'dns_address'],
    ['unspecified', ['0.0.0.0'], 'address_refused', 'dns_address'],
    ['metadata', ['169.254.169.254'], 'address_refused', 'dns_address'],
    ['private', ['10.0.0.1'], 'address_refused', 'dns_address'],
    ['no address', [], 'dns', 'dns_no_address'],
    ['no such name', 'nxdomain', 'dns', 'dns_no_address'],
    ['SERVFAIL', 'servfail', 'dns', 'dns_failed'],
    ['silence', 'silence', 'dns', 'dns_failed'],
  ] as [string, StubAnswer, string, string][])(
    'no name leads to a decoy that resolves to: %s',
    async (_, answer, reason, code) => {
      sender = open({ dnsMs: 600 });
      stub.set(NAME, answer);
      const url = `https://${NAME}:${decoy.port}/`;
      expect(await sender.check(url)).toMatchObject({ code, detail: expect.stringMatching(/\.$/) });
      const result = await post(url);
      expect(result).toMatchObject({ kind: 'failed', reason });
      for (const address of Array.isArray(answer) ? answer : []) {
        expect(result.kind === 'failed' && result.detail).not.toContain(address);
      }
      expect(decoy.connectionCount()).toBe(before);
    },
  );

  test('no name leads to a decoy that was public at the check and is not at the attempt', async () => {
    sender = open({});
    stub.set(NAME, ['8.8.8.8'], ['127.0.0.1']);
    const url = `https://${NAME}:${decoy.port}/`;
    expect(await sender.check(url)).toBeUndefined();
    expect(await post(url)).toMatchObject({ kind: 'failed', reason: 'address_refused' });
    expect(decoy.connectionCount()).toBe(before);
  });

  test('no redirect is followed, and its status is returned', async () => {
    let status = 0;
    const receiver = await openCustomerServer((_, response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${decoy.port}/` }).end();
    });
    sender = open({ allowLoopback: true });
    for (status of [300, 301, 302, 303, 307, 308]) {
      const result = await post(`http://127.0.0.1:${receiver.port}/`);
      expect(result).toMatchObject({ kind: 'answered', status });
    }
    expect(receiver.requestCount()).toBe(6);
    expect(decoy.connectionCount()).toBe(before);
    await receiver.close();
  });

  test('no proxy of the environment is used', async () => {
    const receiver = await openCustomerServer((_, response) => response.end());
    const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy'];
    const old = names.map((name) => [name, process.env[name]] as const);
    for (const name of names) process.env[name] = `http://127.0.0.1:${decoy.port}`;
    try {
      sender = open({ allowLoopback: true });
      const result = await post(`http://127.0.0.1:${receiver.port}/`);
      expect(result).toMatchObject({ kind: 'answered', status: 200 });
    } finally {
      for (const [name, value] of old) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
    expect(receiver.requestCount()).toBe(1);
    expect(decoy.connectionCount()).toBe(before);
    await receiver.close();
  });
});

describe('with TLS, in development', () => {
  let receiver: CustomerServer;
  afterEach(() => receiver.close());

  async function serve(secure: 'server' | 'self-signed', tls = {}) {
    receiver = await openCustomerServer((request, response) => response.end(request.headers.host), {
      secure,
      tls,
    });
    sender = open({ allowLoopback: true, ports: [receiver.port] });
  }

  test('the vetted address is dialled, whatever the name resolves to afterwards', async () => {
    await serve('server');
    const other = await openDecoy('127.0.0.2', receiver.port);
    stub.set(NAME, ['127.0.0.1'], ['127.0.0.2']);
    const result = await post(`https://${NAME}:${receiver.port}/`);
    expect(result).toMatchObject({ status: 200, answer: `${NAME}:${receiver.port}` });
    expect(stub.queryCount(NAME)).toBe(1);
    expect(other.connectionCount()).toBe(0);
    // The next connection is vetted again, and dials the address that was vetted.
    await post(`https://${NAME}:${receiver.port}/`);
    expect(stub.queryCount(NAME)).toBe(2);
    expect([receiver.connectionCount(), other.connectionCount()]).toEqual([1, 1]);
    await other.close();
  });

  test('a reused connection carries the next message without a look-up', async () => {
    await serve('server');
    stub.set(NAME, ['127.0.0.1'], ['10.0.0.1']);
    for (const _ of [1, 2, 3]) {
      const result = await post(`https://${NAME}:${receiver.port}/`, 'whe_kept');
      expect(result).toMatchObject({ status: 200 });
    }
    expect([receiver.connectionCount(), receiver.requestCount(), stub.queryCount(NAME)]).toEqual([
      1, 3, 1,
    ]);
  });

  test('if no server listens at the first of several addresses, the next is dialled', async () => {
    await serve('server');
    stub.set(NAME, ['127.0.0.3', '127.0.0.1']);
    expect(await post(`https://${NAME}:${receiver.port}/`)).toMatchObject({ status: 200 });
  });

  test.each([
    ['self-signed', 'self-signed', NAME, {}],
    ['of another name', 'server', 'other.example.com', {}],
    ['of a name, for an address', 'server', '127.0.0.1', {}],
    ['of another name, by TLS 1.2', 'server', 'other.example.com', { maxVersion: 'TLSv1.2' }],
  ] as const)('a certificate is refused: %s', async (_, secure, name, tls) => {
    await serve(secure, tls);
    stub.set(name, ['127.0.0.1']);
    // Several attempts, because a TLS session must not be resumed by the next one.
    for (const _ of [1, 2, 3]) {
      const result = await post(`https://${name}:${receiver.port}/`, 'whe_again');
      expect(result).toMatchObject({ kind: 'failed', reason: 'tls' });
    }
    expect(receiver.requestCount()).toBe(0);
  });

  test('an untrusted authority is refused, even if the environment disables verification', async () => {
    await serve('server');
    await sender.close();
    stub.set(NAME, ['127.0.0.1']);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      sender = openSender({
        policy: policyOf({ allowLoopback: true, ports: [receiver.port] }),
        resolver: openResolver({ servers: [stub.server] }),
      });
      const result = await post(`https://${NAME}:${receiver.port}/`);
      expect(result).toMatchObject({ kind: 'failed', reason: 'tls' });
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
    expect(receiver.requestCount()).toBe(0);
  });

  test('plain HTTP behind an https URL is refused', async () => {
    receiver = await openCustomerServer((_, response) => response.end());
    sender = open({ allowLoopback: true });
    const result = await post(`https://127.0.0.1:${receiver.port}/`);
    expect(result).toMatchObject({ kind: 'failed', reason: 'tls' });
  });
});
