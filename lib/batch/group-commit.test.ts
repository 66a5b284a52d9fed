import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { GroupClosedError, GroupCommit, type GroupCommitOptions } from './group-commit.ts';

/** A commit that the test ends, and the items that it was given. */
function openGate(options: Omit<GroupCommitOptions<number, string>, 'commit'> = {}) {
  const groups: (readonly number[])[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const signals: AbortSignal[] = [];
  const group = new GroupCommit<number, string>({
    ...options,
    commit: (items, signal) =>
      new Promise((resolve, reject) => {
        groups.push(items);
        signals.push(signal);
        ends.push((error) => (error ? reject(error) : resolve(items.map((item) => `${item}`))));
      }),
  });
  const groupsCame = (count: number) => waitFor(`${count} groups`, () => groups.length === count);
  return { group, groups, ends, signals, groupsCame };
}

describe('a group commit', () => {
  test('commits items of one turn together, and each caller gets its own result', async () => {
    const { group, groups, ends, groupsCame } = openGate();
    const results = [group.add(1), group.add(2), group.add(3)];
    await groupsCame(1);
    ends[0]!();
    expect(await Promise.all(results)).toEqual(['1', '2', '3']);
    expect(groups).toEqual([[1, 2, 3]]);
  });

  test('has one commit in flight; items that arrive meanwhile join the next one', async () => {
    const { group, groups, ends, groupsCame } = openGate();
    group.push(1);
    await groupsCame(1);
    for (const item of [2, 3]) group.push(item);
    await sleep(10);
    expect([groups, group.waitingItems, group.heldItems]).toEqual([[[1]], 2, 3]);
    ends[0]!();
    await groupsCame(2);
    expect([groups, group.waitingItems, group.heldItems]).toEqual([[[1], [2, 3]], 0, 2]);
  });

  test('rejects every caller of a group that fails, and continues with the next', async () => {
    const { group, ends, groupsCame } = openGate();
    const failing = [group.add(1), group.add(2)].map((one) => one.catch((error) => error.message));
    await groupsCame(1);
    const next = group.add(3);
    ends[0]!(new Error('away'));
    expect(await Promise.all(failing)).toEqual(['away', 'away']);
    await groupsCame(2);
    ends[1]!();
    expect(await next).toBe('3');
  });

  test.each([
    ['count', { itemsMax: 2 }, [[5, 1], [1, 9], [1]]],
    ['size', { sizeMax: 6, sizeOf: (item: number) => item }, [[5, 1], [1], [9], [1]]],
    ['neither', {}, [[5, 1, 1, 9, 1]]],
  ])('bounds a group by %s; a larger item goes alone', async (_, bounds, expected) => {
    const groups: (readonly number[])[] = [];
    const group = new GroupCommit<number, number>({
      ...bounds,
      async commit(items) {
        groups.push(items);
        return items;
      },
    });
    expect(await Promise.all([5, 1, 1, 9, 1].map((item) => group.add(item)))).toEqual([
      ...[5, 1, 1, 9, 1],
    ]);
    expect(groups).toEqual(expected);
    expect([group.heldItems, group.heldSize, group.waitingSize]).toEqual([0, 0, 0]);
  });

  test('lingers for more items, unless the group is full', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { group, groups, ends } = openGate({ lingerMs: 60, lingerSizeMax: 3 });
    group.push(1);
    await vi.advanceTimersByTimeAsync(5);
    group.push(2);
    await vi.advanceTimersByTimeAsync(54);
    expect(groups).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(groups).toEqual([[1, 2]]);
    for (const item of [3, 4]) group.push(item);
    ends[0]!();
    await vi.advanceTimersByTimeAsync(59);
    expect(groups).toEqual([[1, 2]]);
    for (const item of [5, 6]) group.push(item);
    await vi.advanceTimersByTimeAsync(0);
    expect(groups).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ]);
  });

  test('keeps an interval between the beginnings of commits', async () => {
    const beganMs: number[] = [];
    const group = new GroupCommit<number>({
      intervalMs: 40,
      async commit() {
        beganMs.push(performance.now());
        return [];
      },
    });
    for (const _ of [1, 2, 3]) await group.add(1);
    expect(beganMs[1]! - beganMs[0]!).toBeGreaterThan(38);
    expect(beganMs[2]! - beganMs[1]!).toBeGreaterThan(38);
  });

  test('removes waiting items and rejects their callers; items in flight stay', async () => {
    const { group, groups, ends, groupsCame } = openGate();
    const first = group.add(1);
    await groupsCame(1);
    const second = group.add(2).catch((error) => error);
    const third = group.add(3);
    expect(group.drop((item) => item < 3)).toEqual([2]);
    expect(await second).toBeInstanceOf(GroupClosedError);
    ends[0]!();
    await groupsCame(2);
    ends[1]!();
    expect([await first, await third, groups]).toEqual(['1', '3', [[1], [3]]]);
  });
});

describe('the close', () => {
  test('commits waiting items, and items that arrive while it drains, without lingering', async () => {
    const { group, groups, ends, groupsCame } = openGate({ lingerMs: 60_000, itemsMax: 2 });
    for (const item of [1, 2, 3]) group.push(item);
    await groupsCame(1);
    const closed = group.close();
    const late = group.add(4);
    ends[0]!();
    await groupsCame(2);
    ends[1]!();
    expect(await late).toBe('4');
    await closed;
    expect(groups).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await expect(group.add(5)).rejects.toThrow(GroupClosedError);
    group.push(6);
    expect(group.heldItems).toBe(0);
  });

  test('at its deadline aborts the commit under way and rejects waiting items', async () => {
    const { group, ends, signals, groupsCame } = openGate();
    const hanging = group.add(1);
    await groupsCame(1);
    const waiting = group.add(2).catch((error) => error);
    await group.close(30);
    expect(await waiting).toBeInstanceOf(GroupClosedError);
    expect(signals[0]!.aborted).toBe(true);
    ends[0]!();
    expect(await hanging).toBe('1');
  });

  test('of an idle group returns at once', async () => {
    const { group, groups } = openGate({ lingerMs: 60_000 });
    await group.close();
    expect(groups).toEqual([]);
  });
});

test('for any arrival times, order and results hold, commits do not overlap, and no bound is exceeded', async () => {
  const plan = fc.array(fc.record({ size: fc.integer({ min: 1, max: 9 }), pause: fc.nat(2) }), {
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(plan, fc.integer({ min: 1, max: 8 }), async (steps, itemsMax) => {
      const committed: number[] = [];
      let isUnderWay = false;
      const group = new GroupCommit<{ n: number; size: number }, number>({
        ...{ itemsMax, sizeMax: 12, sizeOf: ({ size }) => size },
        async commit(items) {
          expect(isUnderWay).toBe(false);
          isUnderWay = true;
          const size = items.reduce((sum, item) => sum + item.size, 0);
          expect(items.length === 1 || size <= 12).toBe(true);
          expect(items.length).toBeLessThanOrEqual(itemsMax);
          await new Promise((resolve) => setImmediate(resolve));
          committed.push(...items.map(({ n }) => n));
          isUnderWay = false;
          return items.map(({ n }) => n);
        },
      });
      const results: Promise<number>[] = [];
      for (const [n, { size, pause }] of steps.entries()) {
        results.push(group.add({ n, size }));
        for (let turn = 0; turn < pause; turn += 1) {
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      await group.close();
      const all = steps.map((_, n) => n);
      expect(await Promise.all(results)).toEqual(all);
      expect(committed).toEqual(all);
    }),
    { numRuns: 50 },
  );
});
