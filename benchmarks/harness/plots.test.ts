import { describe, expect, test } from 'vitest';
import { createLatencies, createTimeline } from './histogram.ts';
import {
  ninesOf,
  percentilePlot,
  percentilePoints,
  timelinePlot,
  timelinePoints,
} from './plots.ts';

function encodedOf(values: readonly number[]): string {
  const latencies = createLatencies();
  for (const value of values) latencies.record(value);
  return latencies.spread().encoded;
}

const THOUSAND = Array.from({ length: 1_000 }, (_, i) => (i + 1) * 100);

describe('the plot of percentiles', () => {
  test('each nine takes the same room', () => {
    expect([0, 90, 99, 99.9].map((share) => Math.round(ninesOf(share) * 1e6) / 1e6)).toEqual([
      0, 1, 2, 3,
    ]);
  });

  test('rises from the least to the greatest value, and ends where the count supports no more', () => {
    const points = percentilePoints([{ name: 'a', encoded: encodedOf(THOUSAND) }]);
    const at = (nines: number) => points.find((point) => Math.abs(point.nines - nines) < 1e-9)!.ms;
    expect(points.at(-1)!.nines).toBeCloseTo(3, 9);
    expect(points.at(-1)!.ms).toBeCloseTo(100, 0);
    expect(at(1)).toBeCloseTo(90, 0);
    expect(at(2)).toBeCloseTo(99, 0);
    expect(points[0]!.ms).toBeLessThan(0.2);
    expect(points.every((point, i) => i === 0 || point.ms >= points[i - 1]!.ms)).toBe(true);
  });

  test.each([
    [[], 0],
    [[5], 1],
  ])('of %j there are %d points', (values, count) => {
    expect(percentilePoints([{ name: 'a', encoded: encodedOf(values) }])).toHaveLength(count);
  });

  test('is an SVG with a line for each series, labelled by nines', async () => {
    const svg = await percentilePlot('POST → ok', [
      { name: 'ours', encoded: encodedOf(THOUSAND), seconds: [] },
      { name: 'echo', encoded: encodedOf([1, 2, 3]), seconds: [] },
    ]);
    expect(svg).toMatch(/^<svg /);
    for (const text of ['POST → ok', 'ours', 'echo', '90%', '99%', '99.9%']) {
      expect(svg).toContain(`>${text}<`);
    }
    expect(svg.match(/mark-line role-mark/g)).toHaveLength(2);
  });
});

describe('the timeline', () => {
  test('a pill counts in the second in which it was planned', () => {
    const timeline = createTimeline(5_000_000);
    timeline.record(5_000_000, 1_000);
    timeline.record(5_999_999, 3_000_000); // answered in second 3
    timeline.record(6_000_000, 2_000);
    timeline.record(99_000_000_000, 2_000); // beyond the hour
    expect(timeline.seconds().map(({ second, count }) => [second, count])).toEqual([
      [0, 2],
      [1, 1],
      [3_600, 1],
    ]);
    expect(timeline.seconds()[0]!.p99 / 3_000_000).toBeCloseTo(1, 1);
  });

  test('has two points a second, and draws two lines a run', async () => {
    const timeline = createTimeline(0);
    for (let i = 0; i < 30; i += 1) timeline.record(i * 100_000, 1_000 + i);
    const series = [{ name: '1,000/s', encoded: '', seconds: timeline.seconds() }];
    expect(timelinePoints(series)).toHaveLength(6);
    const svg = await timelinePlot('by second', series);
    expect(svg).toContain('>1,000/s<');
    expect(svg.match(/mark-line role-mark/g)).toHaveLength(2);
  });
});
