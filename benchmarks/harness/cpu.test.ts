import { expect, test } from 'vitest';
import { cpuBetween } from './cpu.ts';

test('CPU between two readings leaves out a process that began or ended meanwhile', () => {
  expect(cpuBetween({ a: 1, gone: 5 }, { a: 1.25, fresh: 3 })).toEqual({ a: 0.25 });
});
