import { expect, test } from 'vitest';
import { metricsRegistry } from '../../lib/metrics/metrics.ts';
import {
  countSecurityEvent,
  dueAccountEvents,
  noteAccountEvent,
  putBackCounts,
  takeCounts,
} from './security-events.ts';

const totalOf = (counts: readonly { readonly count: number }[]) =>
  counts.reduce((sum, { count }) => sum + count, 0);

test('addresses of one IPv6 network are counted together', () => {
  for (const end of ['1', '2', 'ffff:1']) countSecurityEvent('v6', `2001:db8::${end}`);
  expect(takeCounts().map(({ network, count }) => [network, count])).toEqual([
    ['2001:db8::/64', 3],
  ]);
});

test('counts that could not be stored are added to newer ones', () => {
  countSecurityEvent('kept', '192.0.2.1');
  const taken = takeCounts();
  countSecurityEvent('kept', '192.0.2.1');
  putBackCounts(taken);
  expect(totalOf(takeCounts())).toBe(2);
});

test('a flood from 20,000 networks makes a bounded number of rows and one label, and loses no count', async () => {
  for (let n = 0; n < 20_000; n += 1) {
    countSecurityEvent('key_invalid', `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  }
  const counts = takeCounts();
  // Two, if the flood ran over the end of a period.
  expect(counts.length).toBeLessThanOrEqual(2 * 101);
  expect(totalOf(counts)).toBe(20_000);
  expect(counts.some(({ network }) => network === 'other')).toBe(true);
  const text = await metricsRegistry.getSingleMetricAsString('pillole_security_events_total');
  expect(text).toMatch(/\{event="key_invalid"\} 20000/);
  expect(text).not.toContain('10.0.');
});

test('kinds of events are bounded: further ones are other', () => {
  for (let n = 0; n < 500; n += 1) countSecurityEvent(`kind${n}`, '192.0.2.1');
  const counts = takeCounts();
  expect(new Set(counts.map(({ event }) => event)).size).toBeLessThanOrEqual(101);
  expect(totalOf(counts)).toBe(500);
});

test('an account gets one entry an hour for equal events, with their number', () => {
  const note = () =>
    noteAccountEvent({
      accountId: 'acc_a',
      action: 'access.refused',
      actor: 'system',
      event: 'key_revoked',
    });
  const now = Date.now();
  const hours = (n: number) => dueAccountEvents(now + n * 3_600_000);
  note();
  const [first] = hours(0);
  expect(first).toMatchObject({ count: 1, newest: { accountId: 'acc_a' } });
  first!.written();
  for (let n = 0; n < 5_000; n += 1) note();
  expect(hours(0.9)).toEqual([]);
  const [second] = hours(1);
  expect(second).toMatchObject({ count: 5_000 });
  second!.written();
  expect(hours(2)).toEqual([]);
});

test('accounts whose events wait are bounded', () => {
  for (let n = 0; n < 30_000; n += 1) {
    noteAccountEvent({ accountId: `acc_${n}`, action: 'a.b', actor: 'system' });
  }
  expect(dueAccountEvents(Date.now()).length).toBeLessThanOrEqual(10_000);
});
