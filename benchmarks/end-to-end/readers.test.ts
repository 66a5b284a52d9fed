import { expect, test } from 'vitest';
import { pillId } from '../load/pill-load.ts';
import { createDeliveryMonitor } from './readers.ts';

test('a pill that arrived although its send failed does not count as another pill', () => {
  const monitor = createDeliveryMonitor(1);
  monitor.begin({ run: 'r', pills: 3, perS: 1_000, startMicros: 0 });
  monitor.receive(0, pillId('r', 0), 10);
  monitor.receive(0, pillId('r', 1), 20);
  expect(monitor.arrived([0])).toBe(1);
  monitor.receive(0, pillId('r', 2), 30);
  expect(monitor.arrived([0])).toBe(2);
  expect(monitor.end({ answersMicros: [0, 5, 5] })).toMatchObject({ lost: 0, doubled: 0 });
});

test('a lost pill and a duplicate are counted once each, and pills of another run not at all', () => {
  const monitor = createDeliveryMonitor(2);
  monitor.begin({ run: 'r', pills: 2, perS: 1_000, startMicros: 0 });
  for (const pill of [0, 1, 1, 1]) monitor.receive(0, pillId('r', pill), 10);
  monitor.receive(1, pillId('r', 0), 10);
  monitor.receive(1, pillId('r2', 1), 10);
  expect(monitor.end({ answersMicros: [5, 5] })).toMatchObject({ lost: 1, doubled: 1 });
});
