import { expect, test } from 'vitest';
import { pillAt } from '../testing/scripted-frames.ts';
import { matchesSubscription } from './stream-subscription.ts';

const ALL = { symbols: ['*'], filter: undefined, snapshot: true, backfill: true } as const;

test('a fill delivers late pills as the stream would: not in mode latest', () => {
  const late = pillAt(5, 4, { late: true });
  const live = pillAt(6, 5);
  for (const filter of [undefined, { min_confidence: 50 }]) {
    const inMode = (mode: 'all' | 'latest') =>
      [late, live].map((pill) => matchesSubscription({ ...ALL, mode, filter }, pill));
    expect(inMode('all')).toEqual([true, true]);
    expect(inMode('latest')).toEqual([false, true]);
  }
});
