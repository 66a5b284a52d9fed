import { expect, test } from 'vitest';
import { mainThreadOf } from './trace.ts';

const named = (pid: number, name: string) => ({
  ...{ name: 'thread_name', ph: 'M', pid, tid: 1, ts: 0, args: { name } },
});
const task = (pid: number, ts: number, dur: number, tid = 1) => ({
  ...{ name: 'RunTask', ph: 'X', pid, tid, ts, dur },
});
const trace = (...traceEvents: object[]) => JSON.stringify({ traceEvents });

test('the busiest main thread counts, other threads and processes do not', () => {
  const main = mainThreadOf(
    trace(
      named(1, 'CrRendererMain'),
      named(2, 'CrRendererMain'),
      named(3, 'CrBrowserMain'),
      task(1, 0, 10_000),
      { ...task(1, 40_000, 60_000), tdur: 20_000 },
      task(1, 50_000, 90_000, 7),
      task(2, 0, 1_000),
      task(3, 0, 900_000),
    ),
  );
  expect(main).toEqual({
    ...{ tasks: 2, busyShare: 0.7, longTasks: 1, longestMicros: 60_000 },
    ...{ longCpuTasks: 0, longestCpuMicros: 20_000 },
  });
});

test('a trace without tasks is refused', () => {
  expect(() => mainThreadOf(trace(named(1, 'CrRendererMain')))).toThrow('no tasks');
});
