import { beforeEach, expect, test } from 'vitest';
import { type Attempts, createAttempts, networkOf } from './attempts.ts';

let nowMs: number;
let attempts: Attempts;

beforeEach(() => {
  nowMs = 5_000;
  attempts = createAttempts({ max: 3, windowMs: 60_000 }, () => nowMs);
});

const take = (times: number, name = 'a') =>
  Array.from({ length: times }, () => attempts.take(name));

test('as many pass as are allowed, then it is told how long to wait', () => {
  expect(take(5)).toEqual([0, 0, 0, 60, 60]);
  nowMs += 20_500;
  expect(take(1)).toEqual([40]);
  nowMs += 39_499;
  expect(take(1)).toEqual([1]);
});

test('the window ends by its first attempt, whatever was tried in it', () => {
  take(1);
  nowMs += 59_999;
  expect(take(3)).toEqual([0, 0, 1]);
  nowMs += 1;
  expect(take(4)).toEqual([0, 0, 0, 60]);
});

test('each name is counted by itself', () => {
  expect(take(4, 'a').at(-1)).toBe(60);
  expect(take(3, 'b')).toEqual([0, 0, 0]);
});

test('what is forgotten begins anew, and forgetting nobody is nothing', () => {
  take(4, 'a');
  take(4, 'b');
  attempts.forget('a');
  attempts.forget('nobody');
  expect(take(4, 'a')).toEqual([0, 0, 0, 60]);
  expect(take(1, 'b')).toEqual([60]);
});

test('names are bounded: with 50,001 the first is forgotten, the others are not', () => {
  take(4, 'first');
  take(4, 'second');
  for (let name = 0; name < 49_998; name += 1) attempts.take(`name ${name}`);
  expect(take(1, 'first')).toEqual([60]);
  attempts.take('one more');
  expect(take(1, 'second')).toEqual([60]);
  expect(take(1, 'first')).toEqual([0]);
});

test('a limit of none refuses the first', () => {
  const none = createAttempts({ max: 0, windowMs: 10 }, () => nowMs);
  expect(none.take('a')).toBe(1);
});

test('one that was given back does not count', () => {
  take(3, 'a');
  attempts.giveBack('a');
  expect(take(2, 'a')).toEqual([0, 60]);
  attempts.giveBack('nobody');
});

test('windows that have ended take no room', () => {
  for (let name = 0; name < 100; name += 1) attempts.take(`name ${name}`);
  nowMs += 30_000;
  attempts.take('younger');
  nowMs += 30_000;
  attempts.take('new');
  expect(attempts.size).toBe(2);
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
  ['2001:db8:1:3::1', '2001:db8:1:3::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['::1', '::/64'],
  ['nonsense', 'nonsense'],
  ['x'.repeat(1_000), 'x'.repeat(64)],
])('%s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
