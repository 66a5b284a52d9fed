import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFrontier } from './frontier.ts';

test('is the first offset that is not settled, whatever the order of settling', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(3), { maxLength: 60 }),
      fc.infiniteStream(fc.nat()),
      (messages, choices) => {
        const frontier = createFrontier(100);
        const open = new Map<number, number>();
        for (const [at, count] of messages.entries()) {
          frontier.opened(100 + at, count);
          if (count > 0) open.set(100 + at, count);
        }
        const end = 100 + messages.length;
        for (;;) {
          expect(frontier.next()).toBe(Math.min(...open.keys(), end));
          expect(frontier.size).toBe([...open.values()].reduce((sum, count) => sum + count, 0));
          const offsets = [...open.keys()];
          if (offsets.length === 0) break;
          const offset = offsets[choices.next().value! % offsets.length]!;
          frontier.settled(offset);
          if (open.get(offset) === 1) open.delete(offset);
          else open.set(offset, open.get(offset)! - 1);
        }
      },
    ),
  );
});

test('passes records that nobody wants, and never goes back', () => {
  const frontier = createFrontier(5);
  frontier.opened(5, 1);
  frontier.passed(9);
  expect(frontier.next()).toBe(5);
  frontier.settled(5);
  frontier.settled(5);
  expect(frontier.next()).toBe(9);
  frontier.passed(7);
  expect(frontier.next()).toBe(9);
});
