import { expect, test } from 'vitest';
import { completeUntil } from './complete-until.ts';

const AT = 1_000;
const stored = (of: Record<number, [offset: number, receivedAt: number]>) => ({
  offsets: new Map(Object.entries(of).map(([p, [offset]]) => [Number(p), offset])),
  receivedAts: new Map(Object.entries(of).map(([p, [, receivedAt]]) => [Number(p), receivedAt])),
});
const end = (of: Record<number, number>) => ({
  offsets: new Map(Object.entries(of).map(([p, offset]) => [Number(p), offset])),
  at: AT,
});

test.each([
  ['all is stored', end({ 0: 5, 1: 7 }), stored({ 0: [5, 900], 1: [7, 100] }), AT],
  ['the table has more than the end that is known', end({ 0: 5 }), stored({ 0: [9, 1_900] }), AT],
  ['one partition is behind', end({ 0: 5, 1: 7 }), stored({ 0: [5, 900], 1: [6, 100] }), 100],
  ['two are', end({ 0: 5, 1: 7 }), stored({ 0: [4, 300], 1: [6, 400] }), 300],
  [
    'behind, but its newest came after the end was read',
    end({ 0: 9 }),
    stored({ 0: [8, 1_200] }),
    AT,
  ],
  ['one has nothing yet', end({ 0: 5, 1: 7 }), stored({ 0: [5, 900] }), 0],
  ['one was never written to', end({ 0: 5, 1: -1 }), stored({ 0: [5, 900] }), AT],
  ['nobody tells where the log ends', undefined, stored({ 0: [5, 900] }), 0],
  ['an empty log', end({ 0: -1 }), stored({}), AT],
])('%s', (_, known, table, until) => {
  expect(completeUntil(known, table)).toBe(until);
});
