import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addressKind } from './address-kind.ts';

test.each([
  // IPv4, first and last of each range, and its public neighbours.
  ['0.0.0.0', 'refused'],
  ['0.255.255.255', 'refused'],
  ['1.0.0.0', 'public'],
  ['9.255.255.255', 'public'],
  ['10.0.0.0', 'refused'],
  ['10.255.255.255', 'refused'],
  ['11.0.0.0', 'public'],
  ['100.63.255.255', 'public'],
  ['100.64.0.0', 'refused'],
  ['100.100.100.200', 'refused'], // metadata, Alibaba
  ['100.127.255.255', 'refused'],
  ['100.128.0.0', 'public'],
  ['126.255.255.255', 'public'],
  ['127.0.0.0', 'loopback'],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.255', 'loopback'],
  ['128.0.0.0', 'public'],
  ['168.63.129.15', 'public'],
  ['168.63.129.16', 'refused'], // metadata, Azure
  ['169.253.255.255', 'public'],
  ['169.254.0.0', 'refused'],
  ['169.254.169.254', 'refused'], // metadata, most
  ['169.254.170.2', 'refused'], // metadata, containers at AWS
  ['169.254.255.255', 'refused'],
  ['172.15.255.255', 'public'],
  ['172.16.0.0', 'refused'],
  ['172.31.255.255', 'refused'],
  ['172.32.0.0', 'public'],
  ['192.0.0.0', 'refused'],
  ['192.0.0.192', 'refused'], // metadata, Oracle
  ['192.0.2.1', 'refused'],
  ['192.31.196.1', 'refused'],
  ['192.52.193.1', 'refused'],
  ['192.88.99.1', 'refused'],
  ['192.167.255.255', 'public'],
  ['192.168.0.0', 'refused'],
  ['192.168.255.255', 'refused'],
  ['192.175.48.1', 'refused'],
  ['198.17.255.255', 'public'],
  ['198.18.0.0', 'refused'],
  ['198.19.255.255', 'refused'],
  ['198.20.0.0', 'public'],
  ['198.51.100.1', 'refused'],
  ['203.0.113.1', 'refused'],
  ['223.255.255.255', 'public'],
  ['224.0.0.0', 'refused'],
  ['239.255.255.255', 'refused'],
  ['240.0.0.0', 'refused'],
  ['255.255.255.255', 'refused'],
  // IPv6.
  ['::', 'refused'],
  ['::1', 'loopback'],
  ['0:0:0:0:0:0:0:1', 'loopback'],
  ['::2', 'refused'],
  ['::7f00:1', 'refused'], // v4-compatible
  ['::127.0.0.1', 'refused'],
  ['::808:808', 'refused'],
  ['::ffff:127.0.0.1', 'refused'], // v4-mapped
  ['::ffff:a9fe:a9fe', 'refused'],
  ['::ffff:8.8.8.8', 'refused'],
  ['::ffff:0:7f00:1', 'refused'], // v4-translated
  ['64:ff9b::7f00:1', 'refused'], // NAT64
  ['64:ff9b::808:808', 'refused'],
  ['64:ff9b:1::7f00:1', 'refused'], // NAT64, local
  ['64:ff9b:1:ffff:ffff:ffff:ffff:ffff', 'refused'],
  ['100::1', 'refused'],
  ['1fff:ffff::1', 'refused'],
  ['2001::1', 'refused'], // Teredo
  ['2001:0:a00:1::', 'refused'],
  ['2001:2::1', 'refused'],
  ['2001:10::1', 'refused'],
  ['2001:1ff:ffff::1', 'refused'],
  ['2001:200::1', 'public'],
  ['2001:db8::1', 'refused'],
  ['2001:4860:4860::8888', 'public'],
  ['2002:7f00:1::', 'refused'], // 6to4
  ['2002:a9fe:a9fe::1', 'refused'],
  ['2606:4700:4700::1111', 'public'],
  ['2620:4f:8000::1', 'refused'],
  ['3fff:fff::1', 'refused'],
  ['3fff:1000::1', 'public'],
  ['4000::1', 'refused'],
  ['5f00::1', 'refused'],
  ['fc00::1', 'refused'],
  ['fd00:ec2::254', 'refused'], // metadata, AWS
  ['fd20:ce::254', 'refused'], // metadata, Google
  ['fdff:ffff::1', 'refused'],
  ['fe80::1', 'refused'],
  ['fe80::1%eth0', 'refused'],
  ['2606:4700:4700::1111%eth0', 'refused'],
  ['febf::1', 'refused'],
  ['fec0::1', 'refused'],
  ['ff02::1', 'refused'],
  // Spellings that some parsers read as an address.
  ['', 'refused'],
  ['8.8.8', 'refused'],
  ['127.1', 'refused'],
  ['2130706433', 'refused'],
  ['0x7f.1', 'refused'],
  ['010.8.8.8', 'refused'],
  ['8.8.8.8.', 'refused'],
  [' 8.8.8.8', 'refused'],
  ['[2606:4700:4700::1111]', 'refused'],
  ['localhost', 'refused'],
])('%s is %s', (address, kind) => {
  expect(addressKind(address)).toBe(kind);
});

test('no IPv6 address outside 2000::/3 is public, and none with an IPv4 prefix known to tunnels', () => {
  const group = fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16));
  const rest = fc.array(group, { minLength: 7, maxLength: 7 });
  const first = fc.oneof(
    fc.integer({ min: 0, max: 0x1fff }),
    fc.integer({ min: 0x4000, max: 0xffff }),
    fc.constant(0x2002),
  );
  fc.assert(
    fc.property(first, rest, (head, tail) => {
      expect(addressKind([head.toString(16), ...tail].join(':'))).not.toBe('public');
    }),
  );
});
