import { expect, test } from 'vitest';
import { LiveEdge } from './live-edge.ts';

const pill = (timestamp: string, spread: number) => ({
  timestamp: `2026-11-20T01:${timestamp}.000000Z`,
  gross_spread_percent: spread,
});
const bar = (start: string, low: number, high: number, close: number) => ({
  ...{ start: `2026-11-20T01:${start}.000000Z`, low, high, close },
});

test('pills of a socket extend the last bar and begin new ones', () => {
  const edge = new LiveEdge(60);
  edge.add(pill('02:10', 3));
  edge.add(pill('02:50', 9));
  edge.add(pill('03:00', 5));
  const read = [bar('01:00', 1, 2, 2), bar('02:00', 2, 4, 4)];
  expect(edge.extend(read)).toEqual([
    bar('01:00', 1, 2, 2),
    bar('02:00', 2, 9, 9),
    { start: '2026-11-20T01:03:00.000Z', low: 5, high: 5, close: 5 },
  ]);
});

test('a pill of before the bars adds none; without bars the pills make them', () => {
  const edge = new LiveEdge(60);
  edge.add(pill('00:10', 3));
  expect(edge.extend([bar('01:00', 1, 2, 2)])).toEqual([bar('01:00', 1, 2, 2)]);
  expect(edge.extend([])).toHaveLength(1);
});

test('the memory is bounded', () => {
  const edge = new LiveEdge(1);
  for (let second = 0; second < 2_000; second += 1) {
    edge.add({ timestamp: new Date(second * 1_000).toISOString(), gross_spread_percent: 1 });
  }
  expect(edge.extend([])).toHaveLength(500);
});
