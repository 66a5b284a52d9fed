import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../config.ts';
import { addressesOfHost, openResolver, ResolveError, readDnsServers, vet } from './resolve.ts';
import { type DnsStub, openDnsStub } from './testing/dns-stub.ts';

const strict = { allowLoopback: false, ports: [443] };
const development = { allowLoopback: true, ports: [443] };
const never = new AbortController().signal;
let stub: DnsStub;

beforeAll(async () => {
  stub = await openDnsStub();
});
afterAll(() => stub.close());

function resolver(timeoutMs = 10_000) {
  return openResolver({ servers: [stub.server], timeoutMs });
}

test('all A and AAAA come, IPv4 first, and again at every call', async () => {
  const all = ['8.8.8.8', '2001:4860:4860::8888', '8.8.4.4'];
  stub.set('two.example.com', all, ['1.1.1.1']);
  expect(await resolver().resolve('two.example.com', never)).toEqual([all[0], all[2], all[1]]);
  expect(await resolver().resolve('two.example.com', never)).toEqual(['1.1.1.1']);
});

test.each([
  ['only AAAA', ['2001:4860:4860::8888'], ['2001:4860:4860::8888']],
  ['nothing', [], []],
  ['no such name', 'nxdomain', []],
] as const)('%s is an answer', async (_, answer, addresses) => {
  stub.set('case.example.com', answer);
  expect(await resolver().resolve('case.example.com', never)).toEqual(addresses);
});

test.each(['servfail', 'silence'] as const)('%s is told as such', async (answer) => {
  stub.set('bad.example.com', answer);
  const call = resolver(600).resolve('bad.example.com', never);
  await expect(call).rejects.toThrow(ResolveError);
  await expect(call).rejects.toThrow('bad.example.com could not be resolved');
});

test('the signal ends it', async () => {
  stub.set('slow.example.com', 'silence');
  const ending = new AbortController();
  const call = resolver(3_600_000).resolve('slow.example.com', ending.signal);
  ending.abort();
  await expect(call).rejects.toThrow(ResolveError);
  await expect(resolver().resolve('slow.example.com', ending.signal)).rejects.toThrow(ResolveError);
});

test('the file of hosts has no part in it', async () => {
  stub.set('localhost', ['8.8.8.8']);
  expect(await resolver().resolve('localhost', never)).toEqual(['8.8.8.8']);
});

test('literals stand for themselves, local names for loopback: neither asks', async () => {
  const before = stub.asked('localhost');
  expect(await addressesOfHost('[::ffff:7f00:1]', resolver(), never)).toEqual(['::ffff:7f00:1']);
  expect(await addressesOfHost('8.8.8.8', resolver(), never)).toEqual(['8.8.8.8']);
  expect(await addressesOfHost('localhost', resolver(), never)).toEqual(['127.0.0.1', '::1']);
  expect(stub.asked('localhost')).toBe(before);
});

test.each([
  [['8.8.8.8', '2001:4860:4860::8888'], 'public', 'public'],
  [['127.0.0.1'], 'dns_address', 'public'],
  [['127.0.0.1', '127.0.0.2', '::1'], 'dns_address', 'public'],
  [['8.8.8.8', '127.0.0.1'], 'dns_address', 'dns_address'],
  [['8.8.8.8', '10.0.0.1'], 'dns_address', 'dns_address'],
  [['10.0.0.1', '8.8.8.8'], 'dns_address', 'dns_address'],
  [['10.0.0.1'], 'dns_address', 'dns_address'],
  [['127.0.0.1', '10.0.0.1'], 'dns_address', 'dns_address'],
  [['169.254.169.254'], 'dns_address', 'dns_address'],
  [['8.8.8.8', '::ffff:8.8.8.8'], 'dns_address', 'dns_address'],
  [['64:ff9b::808:808'], 'dns_address', 'dns_address'],
  [[], 'dns_no_address', 'dns_no_address'],
])('%j: %s; in development: %s', (addresses, ...verdicts) => {
  const told = [strict, development].map((policy) => {
    const vetted = vet(addresses, policy);
    return vetted.ok ? 'public' : vetted.fault.code;
  });
  expect(told).toEqual(verdicts);
});

test('the sentence does not tell what a name resolved to', () => {
  const vetted = vet(['10.1.2.3'], strict);
  expect(JSON.stringify(vetted)).not.toContain('10.1.2.3');
});

test('name servers come of the environment', () => {
  const read = (servers: string) => readConfig({ WEBHOOK_DNS_SERVERS: servers }, readDnsServers);
  expect(read('')).toBeUndefined();
  expect(read('192.0.2.1:53, [2001:db8::1]:53,9.9.9.9')).toEqual([
    '192.0.2.1:53',
    '[2001:db8::1]:53',
    '9.9.9.9',
  ]);
  for (const bad of [
    'ns.example.com',
    '1.2.3',
    '192.0.2.1:x',
    '2001:db8::1',
    ',',
    '[1.2.3.4]:53',
  ]) {
    expect(() => read(bad)).toThrow(ConfigError);
  }
});
