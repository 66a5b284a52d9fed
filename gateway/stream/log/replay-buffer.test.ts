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

test('holds no more pills in memory than its bound', async () => {
  const pillsMax = 3_000;
  const replayBuffer = createReplayBuffer(pillsMax);
  replayBuffer.begin(0, 0);
  const seen: WeakRef<EffectivePill>[] = [];
  for (let offset = 0; offset < 5_500; offset += 1) {
    const pill = makeEffective(0, offset);
    seen.push(new WeakRef(pill));
    replayBuffer.append(pill);
  }
  // A weak reference that was read in this turn stays alive until the turn ends.
  await nextTurn();
  collect();
  expect(seen.filter((ref) => ref.deref() !== undefined)).toHaveLength(pillsMax);
  expect(replayBuffer.after(new Map([[0, 2_499]]), () => true, 10_000)).toHaveLength(pillsMax);
  expect(replayBuffer.startOf(0)).toBe(2_500);
});
