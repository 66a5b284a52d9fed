import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLog } from '../../../lib/log/log.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { openOverridesFile } from '../calendars/overrides-file.ts';
import { createVenueOf, NO_RULES } from '../calendars/venue-rules.ts';
import { openMarkets } from './open-markets.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('changes of the file apply within 10 s, until the process stops', () => {
  const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'overrides-')), 'days.json');
  const close = (day: string) =>
    writeFileSync(file, JSON.stringify({ XHKG: { '2026-11-19': 'closed', [day]: 'closed' } }));
  const stops: (() => unknown)[] = [];
  const life: Lifecycle = {
    ...{ log: silentLog, signal: new AbortController().signal },
    readyWhen: () => undefined,
    fail: (error) => {
      throw error;
    },
    onStop: (_, stop) => void stops.push(stop),
  };
  close('2026-11-19');
  const markets = openMarkets(openOverridesFile(file, silentLog), createVenueOf(NO_RULES), life);
  const stateOf = (day: string) => markets.of('0700.HK', Date.parse(`${day}T02:00:00Z`)).state;
  expect([stateOf('2026-11-19'), stateOf('2026-11-20')]).toEqual(['holiday', 'open']);
  close('2026-11-20');
  vi.advanceTimersByTime(10_000);
  expect(stateOf('2026-11-20')).toBe('holiday');
  for (const stop of stops) stop();
  expect(vi.getTimerCount()).toBe(0);
});

test('without a file there are no overrides', () => {
  expect(openOverridesFile(undefined, silentLog).overrides).toEqual({});
});
