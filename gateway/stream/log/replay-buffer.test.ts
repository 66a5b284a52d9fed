import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { createReplayBuffer } from './replay-buffer.ts';

function makeEffective(partition: number, offset: number): EffectivePill {
  return {
    ...{ id: `${partition}-${offset}`, timestamp: offset, symbol: 'AA', gross_spread_percent: 1 },
    ...{ market_state: 'open', confidence: 1, received_at: offset, source: null, kind: null },
    ...{ partition, offset, order: offset, late: false, backfill: false, prev: null, last: offset },
  } as EffectivePill;
}

/** Collects garbage now. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

/** Those that garbage collection leaves. */
async function aliveOf(refs: readonly WeakRef<EffectivePill>[]): Promise<number> {
  // A weak reference that was read in this turn stays alive until the turn ends.
  await nextTurn();
  collect();
  return refs.filter((ref) => ref.deref() !== undefined).length;
}

test('keeps no object of a pill, except of those that were requested, until they are evicted', async () => {
  const pillsMax = 3_000;
  const replayBuffer = createReplayBuffer(pillsMax);
  replayBuffer.begin(0, 0);
  const appended: WeakRef<EffectivePill>[] = [];
  const appendUntil = (end: number) => {
    for (let offset = appended.length; offset < end; offset += 1) {
      const pill = makeEffective(0, offset);
      appended.push(new WeakRef(pill));
      replayBuffer.append(pill);
    }
  };
  appendUntil(5_500);
  expect(await aliveOf(appended)).toBe(0);
  expect(replayBuffer.startOf(0)).toBe(2_500);
  expect(replayBuffer.after(new Map([[0, 0]]), () => true, 2_999)).toBeUndefined();
  const request = () => {
    const pills = replayBuffer.after(new Map([[0, 2_499]]), () => true, 10_000)!;
    expect(pills).toEqual(
      Array.from({ length: pillsMax }, (_, at) => makeEffective(0, 2_500 + at)),
    );
    // All replays share one object of a pill.
    expect(replayBuffer.after(new Map([[0, 5_498]]), () => true, 10)![0]).toBe(pills.at(-1));
    return pills.map((pill) => new WeakRef(pill));
  };
  const requested = request();
  expect(await aliveOf(requested)).toBe(pillsMax);
  appendUntil(5_600);
  expect(await aliveOf(requested)).toBe(pillsMax - 100);
});

test('pills from before the start that find no room are left out, the oldest first', () => {
  const replayBuffer = createReplayBuffer(5);
  replayBuffer.begin(0, 10);
  replayBuffer.begin(1, 0);
  for (const offset of [11, 12]) replayBuffer.append(makeEffective(0, offset));
  replayBuffer.append(makeEffective(1, 3));
  replayBuffer.prepend(
    0,
    2,
    [2, 4, 6, 9].map((offset) => makeEffective(0, offset)),
  );
  expect(replayBuffer.starts).toEqual(
    new Map([
      [0, 5],
      [1, 0],
    ]),
  );
  const offsets = replayBuffer.after(new Map([[0, -1]]), () => true, 10)!.map((p) => p.offset);
  expect(offsets).toEqual([6, 9, 11, 12]);
  expect(replayBuffer.room).toBe(0);
});
