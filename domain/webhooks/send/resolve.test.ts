import os from 'node:os';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ConfigError, readConfig } from '../../../lib/config/config.ts';
import {
  addressesOfHost,
  openResolver,
  ResolveError,
  readDnsServers,
  vetAddresses,
} from './resolve.ts';
import { type DnsStub, openDnsStub } from './testing/dns-stub.ts';
import { policyOf } from './testing/policy.ts';

const strict = policyOf();
const development = policyOf({ allowLoopback: true });
const never = new AbortController().signal;
let stub: DnsStub;

beforeAll(async () => {
  stub = await openDnsStub();
});
afterAll(() => stub.close());

function resolver(timeoutMs = 10_000) {
  return openResolver({ servers: [stub.server], timeoutMs });
}

test('all A and AAAA records are returned, IPv4 first, and resolved again at every call', async () => {
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

test.each(['servfail', 'silence'] as const)('%s is reported as a ResolveError', async (answer) => {
  stub.set('bad.example.com', answer);
  const call = resolver(600).resolve('bad.example.com', never);
  await expect(call).rejects.toThrow(ResolveError);
  await expect(call).rejects.toThrow('bad.example.com could not be resolved');
});

test('the signal ends a resolution', async () => {
  stub.set('slow.example.com', 'silence');
  const ending = new AbortController();
  const call = resolver(3_600_000).resolve('slow.example.com', ending.signal);
  ending.abort();
  await expect(call).rejects.toThrow(ResolveError);
  await expect(resolver().resolve('slow.example.com', ending.signal)).rejects.toThrow(ResolveError);
});

test('/etc/hosts is ignored', async () => {
  stub.set('localhost', ['8.8.8.8']);
  expect(await resolver().resolve('localhost', never)).toEqual(['8.8.8.8']);
});

test('literals stand for themselves and local names for loopback, without a DNS query', async () => {
  const before = stub.queryCount('localhost');
  expect(await addressesOfHost('[::ffff:7f00:1]', resolver(), never)).toEqual(['::ffff:7f00:1']);
  expect(await addressesOfHost('8.8.8.8', resolver(), never)).toEqual(['8.8.8.8']);
  expect(await addressesOfHost('localhost', resolver(), never)).toEqual(['127.0.0.1', '::1']);
  expect(stub.queryCount('localhost')).toBe(before);
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
  const codes = [strict, development].map(
    (policy) => vetAddresses(addresses, policy, 443)?.code ?? 'public',
  );
  expect(codes).toEqual(verdicts);
});

test('addresses of this machine are refused, also public ones, and our ports of loopback', () => {
  const own = { ports: new Set([5432]), hosts: new Set<string>(), isPublic: false };
  const policy = policyOf({ allowLoopback: true, own });
  expect(vetAddresses(['127.0.0.1'], policy, 5432)).toMatchObject({ code: 'url_own_port' });
  expect(vetAddresses(['127.0.0.1'], policy, 5433)).toBeUndefined();
  const address = {
    address: '8.8.4.4',
    family: 'IPv4',
    internal: false,
  } as os.NetworkInterfaceInfo;
  const interfaces = vi.spyOn(os, 'networkInterfaces').mockReturnValue({ eth0: [address] });
  expect(vetAddresses(['8.8.4.4'], policy, 443)).toMatchObject({ code: 'dns_address' });
  expect(vetAddresses(['8.8.8.8'], policy, 443)).toBeUndefined();
  interfaces.mockRestore();
});

test('the sentence does not name the addresses of a name', () => {
  const vetted = vetAddresses(['10.1.2.3'], strict, 443);
  expect(JSON.stringify(vetted)).not.toContain('10.1.2.3');
});

test('name servers come from the environment', () => {
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
