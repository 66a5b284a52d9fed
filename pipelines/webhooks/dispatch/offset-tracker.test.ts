import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createOffsetTracker } from './offset-tracker.ts';

test('the next offset is the first that is not settled, whatever the order of settling', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(3), { maxLength: 60 }),
      fc.infiniteStream(fc.nat()),
      (messages, choices) => {
        const tracker = createOffsetTracker(100);
        const open = new Map<number, number>();
        for (const [at, count] of messages.entries()) {
          tracker.open(100 + at, count);
          if (count > 0) open.set(100 + at, count);
        }
        const end = 100 + messages.length;
        for (;;) {
          expect(tracker.nextOffset()).toBe(Math.min(...open.keys(), end));
          expect(tracker.size).toBe([...open.values()].reduce((sum, count) => sum + count, 0));
          const offsets = [...open.keys()];
          if (offsets.length === 0) break;
          const offset = offsets[choices.next().value! % offsets.length]!;
          tracker.settle(offset);
          if (open.get(offset) === 1) open.delete(offset);
          else open.set(offset, open.get(offset)! - 1);
        }
      },
    ),
  );
});

test('records without messages are skipped, and the next offset never goes back', () => {
  const tracker = createOffsetTracker(5);
  tracker.open(5, 1);
  tracker.skipTo(9);
  expect(tracker.nextOffset()).toBe(5);
  tracker.settle(5);
  tracker.settle(5);
  expect(tracker.nextOffset()).toBe(9);
  tracker.skipTo(7);
  expect(tracker.nextOffset()).toBe(9);
});
