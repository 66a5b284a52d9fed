import { expect, test } from 'vitest';
import { completeUntil } from './complete-until.ts';

const NOW = 1_000;
const stored = (of: Record<number, [offset: number, receivedAt: number]>) => ({
  offsets: new Map(Object.entries(of).map(([p, [offset]]) => [Number(p), offset])),
  receivedAts: new Map(Object.entries(of).map(([p, [, receivedAt]]) => [Number(p), receivedAt])),
});
const logged = (of: Record<number, number>, isCurrent = true) => ({
  offsets: new Map(Object.entries(of).map(([p, offset]) => [Number(p), offset])),
  isCurrent,
});

test.each([
  ['all is stored', logged({ 0: 5, 1: 7 }), stored({ 0: [5, 900], 1: [7, 100] }), NOW],
  ['the table is ahead of the view', logged({ 0: 5 }), stored({ 0: [9, 900] }), NOW],
  ['one partition is behind', logged({ 0: 5, 1: 7 }), stored({ 0: [5, 900], 1: [6, 100] }), 100],
  ['two are', logged({ 0: 5, 1: 7 }), stored({ 0: [4, 300], 1: [6, 400] }), 300],
  ['one has nothing yet', logged({ 0: 5, 1: 7 }), stored({ 0: [5, 900] }), 0],
  ['nobody tells how far the log is', logged({ 0: 5 }, false), stored({ 0: [5, 900] }), 900],
  ['and the view has not been read', logged({}, false), stored({ 0: [5, 900], 1: [7, 100] }), 100],
  ['nothing is known at all', logged({}, false), stored({}), 0],
  ['an empty log', logged({}), stored({}), NOW],
])('%s', (_, known, table, until) => {
  expect(completeUntil(known, table, NOW)).toBe(until);
});
