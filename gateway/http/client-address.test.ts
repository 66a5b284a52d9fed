import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../lib/config/config.ts';
import { createClientAddress, readTrustedProxies } from './client-address.ts';

const read = (TRUSTED_PROXIES: string) => readConfig({ TRUSTED_PROXIES }, readTrustedProxies);

describe('TRUSTED_PROXIES', () => {
  test.each([
    ['', []],
    ['  ,, ', []],
    ['10.0.0.1', ['10.0.0.1/32']],
    ['10.1.2.3/8, 2001:DB8::1/32 ::1', ['10.0.0.0/8', '2001:db8::/32', '::1/128']],
    ['::ffff:10.0.0.0/104', ['10.0.0.0/8']],
    ['loopback uniquelocal', ['loopback', 'uniquelocal']],
  ])('%j is read as %j', (text, networks) => {
    expect(read(text)).toEqual(networks);
  });

  test.each([
    ...['true', '1', '10.0.0', '0x7f.1', '127.1', '010.0.0.1', 'proxy.example', '10.0.0.1:80'],
    ...['10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/08', '10.0.0.0/', '10.0.0.0/255.0.0.0', '/8'],
    ...['0.0.0.0/0', '::/0', '::ffff:0.0.0.0/96', 'fe80::1%eth0', '2001:db8::/129', 'constructor'],
  ])('%j is refused with a message that names it', (text) => {
    const faulty = () => read(`10.0.0.1, ${text}`);
    expect(faulty).toThrow(ConfigError);
    expect(faulty).toThrow(`TRUSTED_PROXIES: "${text}" must be the address of a proxy`);
  });

  test('more than 256 entries are refused', () => {
    const entries = Array.from({ length: 257 }, (_, i) => `10.0.${i % 256}.1`);
    expect(() => read(entries.join())).toThrow('TRUSTED_PROXIES has 257 entries');
    expect(read(entries.slice(0, 256).join())).toHaveLength(256);
  });
});

describe('the client of a connection', () => {
  const addressOf = createClientAddress(read('10.0.0.0/8, 2001:db8:ffff::/48, loopback'));

  test.each<[string, string, string | undefined, string]>([
    // peer, X-Forwarded-For, client
    ['a client without a proxy', '203.0.113.7', undefined, '203.0.113.7'],
    ['a header from an untrusted peer', '203.0.113.7', '198.51.100.1', '203.0.113.7'],
    ['a proxy that names nobody', '10.0.0.1', undefined, '10.0.0.1'],
    ['a proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['a client that names another', '10.0.0.1', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['a client that names a proxy', '10.0.0.1', '10.9.9.9, 203.0.113.7', '203.0.113.7'],
    ['two proxies', '10.0.0.1', '203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['a chain of proxies only', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['an IPv4-mapped proxy', '::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['an IPv4-mapped client', '10.0.0.1', '::FFFF:203.0.113.7', '203.0.113.7'],
    ['an IPv4-mapped peer', '::ffff:203.0.113.7', '198.51.100.1', '203.0.113.7'],
    ['IPv6', '2001:db8:ffff::1', '2001:DB8:0:0::7', '2001:db8::7'],
    ['IPv6 in full', '2001:0db8:0000:0000:0000:0000:0000:0007', undefined, '2001:db8::7'],
    ['a zone', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['a port', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['an IPv6 port', '10.0.0.1', '[2001:db8::7]:4711', '2001:db8::7'],
    ['brackets', '10.0.0.1', '[2001:db8::7]', '2001:db8::7'],
    ['spaces, tabs, empty elements', '10.0.0.1', ' ,\t203.0.113.7 ,, 10.0.0.2 ,', '203.0.113.7'],
    ['a header of commas', '10.0.0.1', ',,,,', '10.0.0.1'],
    ['no address', '10.0.0.1', 'unknown', '10.0.0.1'],
    ['no address behind two proxies', '10.0.0.1', '203.0.113.7, unknown, 10.0.0.2', '10.0.0.2'],
    ['octal', '10.0.0.1', '0177.0.0.1', '10.0.0.1'],
    ['a short form', '10.0.0.1', '127.1', '10.0.0.1'],
    ['a port out of range', '10.0.0.1', '203.0.113.7:471100', '10.0.0.1'],
    ['control characters', '10.0.0.1', '203.0.113.7\0', '10.0.0.1'],
    ['16 KiB of garbage', '10.0.0.1', 'x'.repeat(16_384), '10.0.0.1'],
    ['16 KiB of commas', '10.0.0.1', ','.repeat(16_384), '10.0.0.1'],
    ['more proxies than are read', '10.0.0.1', `203.0.113.7${', 10.0.0.2'.repeat(32)}`, '10.0.0.2'],
    ['as many as are read', '10.0.0.1', `203.0.113.7${', 10.0.0.2'.repeat(31)}`, '203.0.113.7'],
    ['a peer that is gone', '', '203.0.113.7', ''],
  ])('%s: %s with %j is %s', (_what, peer, header, client) => {
    expect(addressOf(peer, header)).toBe(client);
  });

  test.each([
    ['names the client', '10.0.0.1', '', '203.0.113.7', '203.0.113.7'],
    [
      'outweighs the header of the client',
      '10.0.0.1',
      '198.51.100.1',
      '203.0.113.7',
      '203.0.113.7',
    ],
    ['names a further proxy', '10.0.0.1', '203.0.113.7', '10.0.0.2', '203.0.113.7'],
    ['of a health check names nobody', '10.0.0.1', '', '', '10.0.0.1'],
    ['of an untrusted peer is ignored', '198.51.100.1', '', '203.0.113.7', '198.51.100.1'],
  ])('a PROXY header %s', (_what, peer, header, proxied, client) => {
    expect(addressOf(peer, header, proxied)).toBe(client);
  });

  test('is the peer where no proxy is trusted', () => {
    expect(createClientAddress([])('127.0.0.1', '203.0.113.7', '203.0.113.8')).toBe('127.0.0.1');
  });

  test('is without an address when the peer is gone', () => {
    expect(addressOf(undefined, '203.0.113.7')).toBe('');
  });
});
