import { expect, test } from 'vitest';
import { nowMicros } from './clock.ts';

test('the clock never goes back and stays within the system clock’s millisecond', () => {
  let last = 0;
  const end = performance.now() + 200;
  while (performance.now() < end) {
    const before = Date.now() * 1000;
    const now = nowMicros();
    expect(now).toBeGreaterThanOrEqual(last);
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThan(Date.now() * 1000 + 1000);
    last = now;
  }
});
