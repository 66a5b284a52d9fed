// Messages through a real CONNECT proxy: the receiver is reached by it, or not at all.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../lib/config/config.ts';
import { type ConnectProxy, openConnectProxy } from '../../../testing/connect-proxy.ts';
import { readEgress } from './egress.ts';
import { type CustomerServer, openCustomerServer, pem } from './testing/customer-server.ts';
import { type DnsStub, openDnsStub } from './testing/dns-stub.ts';
import { openSender, type Sender } from './webhook-sender.ts';

const NAME = 'hooks.example.com';
const URL_OF_NAME = `https://${NAME}/in?token=in-the-url`;
const PASSWORD = 'p@ss:word';
const AUTHORIZATION = `Basic ${Buffer.from(`pillole:${PASSWORD}`).toString('base64')}`;
let stub: DnsStub;
let receiver: CustomerServer;
let proxy: ConnectProxy;
let sender: Sender;
const hosts: string[] = [];

beforeAll(async () => {
  stub = await openDnsStub();
  receiver = await openCustomerServer(
    (request, response) => {
      hosts.push(request.headers.host!);
      response.end('received');
    },
    { secure: 'server' },
  );
});
afterAll(async () => {
  await receiver?.close();
  await stub?.close();
});
beforeEach(async () => {
  hosts.splice(0);
  stub.set(NAME, ['8.8.8.8']);
  const routes = () => ({ '8.8.8.8:443': receiver.port, [`${NAME}:443`]: receiver.port });
  proxy = await openConnectProxy({ routes, authorization: AUTHORIZATION });
});
afterEach(async () => {
  await sender?.close();
  await proxy.close();
});

function open(env: Readonly<Record<string, string>> = {}, timeoutMs = 60_000) {
  const credentials = `pillole:${encodeURIComponent(PASSWORD)}@`;
  const egress = readConfig(
    {
      WEBHOOK_EGRESS_PROXY: `http://${credentials}127.0.0.1:${proxy.port}`,
      WEBHOOK_DNS_SERVERS: stub.server,
      ...env,
    },
    readEgress,
  );
  sender = openSender({ ...egress, timeoutMs, ca: pem('authority') });
}

function post(url = URL_OF_NAME, endpointId = 'whe_a') {
  return sender.send({ endpointId, url, headers: {} }, { 'webhook-id': 'msg_1' }, '{}');
}

test('the proxy is asked for the vetted address; TLS verifies the name', async () => {
  open();
  expect(await sender.check(URL_OF_NAME)).toBeUndefined();
  expect(await post()).toMatchObject({ kind: 'answered', status: 200, answer: 'received' });
  expect(proxy.requested).toEqual(['8.8.8.8:443']);
  // The tunnel carries the next message too.
  expect(await post()).toMatchObject({ kind: 'answered', status: 200 });
  expect([proxy.requested.length, hosts]).toEqual([1, [NAME, NAME]]);
  stub.set('other.example.com', ['8.8.8.8']);
  expect(await post('https://other.example.com/', 'whe_b')).toMatchObject({ reason: 'tls' });
  expect(hosts).toHaveLength(2);
});

test.each([
  ['loopback', 'https://127.0.0.1/', 'url_refused'],
  ['loopback by http', 'http://localhost:3000/', 'url_refused'],
  ['a private literal', 'https://10.0.0.1/', 'url_refused'],
  ['the proxy itself', 'https://127.0.0.1:4750/', 'url_refused'],
])('whatever the flags, the proxy is not asked for %s', async (_, url, reason) => {
  for (const dns of ['here', 'proxy']) {
    open({ WEBHOOK_ALLOW_LOOPBACK: 'true', WEBHOOK_EGRESS_DNS: dns });
    expect(await post(url)).toMatchObject({ kind: 'failed', reason });
    await sender.close();
  }
  expect(proxy.requested).toEqual([]);
});

test('the proxy is not asked for a name that resolves to a private address', async () => {
  open();
  stub.set(NAME, ['8.8.8.8', '10.0.0.1']);
  expect(await sender.check(URL_OF_NAME)).toMatchObject({ code: 'dns_address' });
  expect(await post()).toMatchObject({ reason: 'address_refused' });
  expect(proxy.requested).toEqual([]);
});

test('if the proxy resolves names, it is asked for the name, and no DNS query is made', async () => {
  open({ WEBHOOK_EGRESS_DNS: 'proxy' });
  expect(await sender.check(URL_OF_NAME)).toBeUndefined();
  expect(await post()).toMatchObject({ kind: 'answered', status: 200 });
  expect(proxy.requested).toEqual([`${NAME}:443`]);
  expect(stub.queryCount(NAME)).toBe(0);
});

test('if the proxy cannot reach an address, it is asked for the next one', async () => {
  open();
  stub.set(NAME, ['9.9.9.9', '8.8.8.8']);
  expect(await post()).toMatchObject({ kind: 'answered', status: 200 });
  expect(proxy.requested).toEqual(['9.9.9.9:443', '8.8.8.8:443']);
});

describe('a failure of the proxy fails the attempt, and never leads past the proxy', () => {
  test.each([
    ['refuses by 403', 403, 'egress_refused'],
    ['refuses by 407, as smokescreen does', 407, 'egress_refused'],
    ['cannot reach the server', 502, 'connect'],
    ['hangs up', 'close', 'egress_down'],
    ['never answers', 'hang', 'connect'],
  ] as const)('the proxy %s', async (_, mode, reason) => {
    open({}, 3_000);
    proxy.set(mode);
    const result = await post();
    expect(result).toMatchObject({ kind: 'failed', reason: expect.stringMatching(reason) });
    expect(proxy.requested).toEqual(['8.8.8.8:443']);
    expectNoSecret(result);
  });

  test('the proxy is down', async () => {
    open();
    await proxy.close();
    const result = await post();
    expect(result).toMatchObject({ kind: 'failed', reason: 'egress_down' });
    expectNoSecret(result);
  });

  test('its credentials are wrong', async () => {
    open({ WEBHOOK_EGRESS_PROXY: `http://pillole:wrong-one@127.0.0.1:${proxy.port}` });
    const result = await post();
    expect(result).toMatchObject({ kind: 'failed', reason: 'egress_refused' });
    expect(JSON.stringify(result)).not.toContain('wrong-one');
    expectNoSecret(result);
  });

  afterEach(() => expect(hosts).toEqual([]));
});

test('an attempt that is stopped leaves no tunnel half open', async () => {
  open();
  proxy.set('hang');
  const attempt = post();
  await expect.poll(() => proxy.requested.length, { timeout: 60_000 }).toBe(1);
  await sender.close();
  expect(await attempt).toMatchObject({ kind: 'failed', reason: 'stopped' });
});

test.each([
  `socks5://u:${PASSWORD}@proxy.internal:1080`,
  `http://u:${PASSWORD}@proxy.internal:4750/path`,
  `http://u:${PASSWORD}@proxy.internal:99999`,
  `${PASSWORD}`,
])('a setting that is no proxy is refused, without repeating it', (setting) => {
  const read = () => readConfig({ WEBHOOK_EGRESS_PROXY: setting }, readEgress);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(/WEBHOOK_EGRESS_PROXY must be a URL such as/);
  expect(read).not.toThrow(PASSWORD);
});

function expectNoSecret(result: object) {
  const text = JSON.stringify(result);
  for (const secret of [PASSWORD, AUTHORIZATION, 'in-the-url', `${proxy.port}`, '8.8.8.8']) {
    expect(text).not.toContain(secret);
  }
}
