import { expect, test } from 'vitest';
import { canonicalNetworks, NETWORKS_MAX } from './networks.ts';

test.each([
  ['10.1.2.3/8', '10.0.0.0/8'],
  ['192.0.2.7', '192.0.2.7/32'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:0DB8:0:0::1/64', '2001:db8::/64'],
  ['::1', '::1/128'],
  ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
  [' 192.0.2.0/24 ', '192.0.2.0/24'],
])('%s becomes %s', (text, network) => {
  expect(canonicalNetworks([text])).toEqual({ ok: true, networks: [network] });
});

test.each([
  '',
  '/',
  '10.0.0.0/',
  '10.0.0.0/33',
  '10.0.0.0/08',
  '10.0.0.0/-1',
  '10.0.0.0/8/8',
  '10.0/8',
  '010.0.0.1',
  '0x7f.0.0.1',
  '2130706433',
  '::/129',
  'fe80::1%eth0',
  'example.com',
])('%j is not a network', (text) => {
  expect(canonicalNetworks(['192.0.2.1', text])).toMatchObject({ ok: false });
});

test('duplicates are dropped, and one network above the limit is refused', () => {
  const same = canonicalNetworks(['10.0.0.1/8', '10.9.9.9/8']);
  expect(same).toEqual({ ok: true, networks: ['10.0.0.0/8'] });
  const many = Array.from({ length: NETWORKS_MAX + 1 }, (_, i) => `10.0.0.${i}`);
  expect(canonicalNetworks(many).ok).toBe(false);
  expect(canonicalNetworks(many.slice(1)).ok).toBe(true);
});
