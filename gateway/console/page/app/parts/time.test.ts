import { expect, test } from 'vitest';
import { relativeTime } from './time.tsx';

const NOW = '2026-11-20T12:00:00Z';

test.each([
  ['2026-11-20T12:00:00Z', 'in 0 seconds'],
  ['2026-11-20T11:59:59Z', '1 second ago'],
  ['2026-11-20T11:57:00Z', '3 minutes ago'],
  ['2026-11-20T09:00:00Z', '3 hours ago'],
  ['2026-11-18T12:00:00Z', '2 days ago'],
  ['2026-11-22T12:00:00Z', 'in 2 days'],
])('%s, seen at noon, is %s', (time, text) => {
  expect(relativeTime(time, Date.parse(NOW))).toBe(text);
});
