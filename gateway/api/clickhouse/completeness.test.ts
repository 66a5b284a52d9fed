// While a process that follows the log hangs, no answer may claim to cover the whole log.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { makePill } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { LOG_END_KEPT_MS } from '../limits.ts';
import { openPlatform, type Platform } from '../testing/api-platform.ts';

const BACKFILL_AGE_MS = 1_000;
let platform: Platform;
/** The log's end and the table's coverage are each cached for up to this half. */
const CACHED_MS = 2 * LOG_END_KEPT_MS;
let symbols = 0;

beforeAll(async () => {
  platform = await openPlatform({ settings: { backfill_age_ms: BACKFILL_AGE_MS } });
});
afterAll(() => platform?.close());
afterEach(() => {
  for (const { child } of [platform.latest, platform.sink]) child.kill('SIGCONT');
});

/** Writes a pill; its bar and its history are requested with a new query each time. */
async function writeFirst() {
  const symbol = `COIN:${++symbols}`;
  const pill = makePill({ symbol });
  await platform.write([pill]);
  const from = pill.timestamp - 60e6;
  let calls = 0;
  const bars = async () => {
    const to = formatTimestamp(pill.timestamp + 60e6 + calls++);
    const query = `symbol=${symbol}&interval=1s&from=${formatTimestamp(from)}&to=${to}`;
    return (await platform.ask(`/api/analytics/bars?${query}`)).body;
  };
  const history = async () => {
    const query = `symbol=${symbol}&from=${formatTimestamp(from)}`;
    return (await platform.ask(`/api/pills?${query}`)).body;
  };
  return { symbol, bars, history, barEnd: () => sleep(BACKFILL_AGE_MS + 1_000) };
}

test('latest processor and sink hang: no answer claims to include later pills', async () => {
  const { symbol, bars, history, barEnd } = await writeFirst();
  await platform.waitUntilStored();
  const before = platform.end();
  for (const { child } of [platform.latest, platform.sink]) child.kill('SIGSTOP');
  await platform.write([makePill({ symbol })]);
  await barEnd();
  for (const body of [await bars(), await history()]) {
    expect(body.as_of.position).toBe(before);
    expect(body.as_of.lag_ms).toBeGreaterThan(0);
  }
  const { data } = await bars();
  // The missing pill might belong to this bar.
  expect(data.map(({ count, final }: { count: number; final: boolean }) => [count, final])).toEqual(
    [[1, false]],
  );
  for (const { child } of [platform.latest, platform.sink]) child.kill('SIGCONT');
  const covered = await waitFor('full coverage', async () => {
    const all = [await bars(), await history()];
    const isCovered = all.every(({ as_of }) => as_of.lag_ms === 0);
    return isCovered && all[0].data.every(isFinal) && all;
  });
  for (const { as_of } of covered) {
    expect(as_of).toMatchObject({ position: platform.end(), lag_ms: 0 });
  }
});

test('only the latest processor hangs: full coverage is claimed once the pill is stored', async () => {
  const { symbol, bars, history } = await writeFirst();
  await platform.waitUntilStored();
  platform.latest.child.kill('SIGSTOP');
  await platform.write([makePill({ symbol })]);
  await sleep(CACHED_MS);
  for (const get of [bars, history]) {
    await waitFor('full coverage', async () => {
      const { as_of, data } = await get();
      if (as_of.lag_ms !== 0) return `${as_of.lag_ms}`;
      expect(as_of.position).toBe(platform.end());
      return data.length > 0;
    });
  }
});

test('the last record has no effect: full coverage is still claimed', async () => {
  const { symbol, bars } = await writeFirst();
  await platform.write([makePill({ symbol, confidence: 101 })]);
  await sleep(CACHED_MS);
  await waitFor('full coverage', async () => (await bars()).as_of.lag_ms === 0);
  expect((await bars()).as_of.position).toBe(platform.end());
});

function isFinal({ final }: { readonly final: boolean }): boolean {
  return final;
}
