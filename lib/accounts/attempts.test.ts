import { beforeEach, expect, test } from 'vitest';
import { type Attempts, createAttempts } from './attempts.ts';

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
