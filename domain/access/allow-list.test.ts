import { expect, test } from 'vitest';
import { isAllowed, parseAllowList } from './allow-list.ts';

test.each([
  [[], '192.0.2.1', true],
  [[], 'no address', true],
  [['192.0.2.0/24'], '192.0.2.255', true],
  [['192.0.2.0/24'], '192.0.3.0', false],
  [['192.0.2.1/32'], '::ffff:192.0.2.1', true],
  [['192.0.2.1/32'], '::ffff:c000:201', true],
  [['192.0.2.1/32'], '::ffff:192.0.2.2', false],
  [['::ffff:192.0.2.0/120'], '192.0.2.9', true],
  [['2001:db8::/32'], '2001:DB8:0::1', true],
  [['2001:db8::/32'], '2001:db9::1', false],
  [['::/0'], '192.0.2.1', false],
  [['0.0.0.0/0'], '192.0.2.1', true],
  [['0.0.0.0/0'], '2001:db8::1', false],
  [['192.0.2.0/24', '2001:db8::/32'], '2001:db8::1', true],
  [['192.0.2.0/24'], 'no address', false],
  [['192.0.2.0/24'], '', false],
  [['no network'], '192.0.2.1', false],
  [['192.0.2.0/33'], '192.0.2.1', false],
])('from %j, %s is allowed: %s', (cidrs, address, allowed) => {
  expect(isAllowed(parseAllowList(cidrs), address)).toBe(allowed);
});
