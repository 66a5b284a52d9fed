import { expect, test } from 'vitest';
import { completeUntil } from './analytics-reader.ts';

const AT = 1_000;
const coverage = (of: Record<number, [offset: number, receivedAt: number]>) => ({
  offsets: new Map(Object.entries(of).map(([p, [offset]]) => [Number(p), offset])),
  receivedAts: new Map(Object.entries(of).map(([p, [, receivedAt]]) => [Number(p), receivedAt])),
});
const end = (of: Record<number, number>) => ({
  offsets: new Map(Object.entries(of).map(([p, offset]) => [Number(p), offset])),
  at: AT,
});

test.each([
  ['the whole log is stored', end({ 0: 5, 1: 7 }), coverage({ 0: [5, 900], 1: [7, 100] }), AT],
  ['the table is past the known end', end({ 0: 5 }), coverage({ 0: [9, 1_900] }), AT],
  ['one partition is behind', end({ 0: 5, 1: 7 }), coverage({ 0: [5, 900], 1: [6, 100] }), 100],
  ['two are behind', end({ 0: 5, 1: 7 }), coverage({ 0: [4, 300], 1: [6, 400] }), 300],
  [
    'one is behind, but its newest pill came after the end was read',
    end({ 0: 9 }),
    coverage({ 0: [8, 1_200] }),
    AT,
  ],
  ['one has no pill yet', end({ 0: 5, 1: 7 }), coverage({ 0: [5, 900] }), 0],
  ['one was never written to', end({ 0: 5, 1: -1 }), coverage({ 0: [5, 900] }), AT],
  ['the end of the log is unknown', undefined, coverage({ 0: [5, 900] }), 0],
  ['an empty log', end({ 0: -1 }), coverage({}), AT],
])('%s', (_, known, table, until) => {
  expect(completeUntil(known, table)).toBe(until);
});
