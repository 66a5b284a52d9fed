// Whoever follows the log may hang: nobody may claim to have all of it meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../../lib/testing/pills.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { LOG_END_KEPT_MS } from '../limits.ts';
import { openPlatform, type Platform } from '../testing/platform.ts';

const BACKFILL_AGE_MS = 1_000;
let platform: Platform;
/** What is known of the log, and what is known of the table then, may each be so old. */
const KNOWN_FOR_MS = 2 * LOG_END_KEPT_MS;
let symbols = 0;

beforeAll(async () => {
  platform = await openPlatform({ settings: { backfill_age_ms: BACKFILL_AGE_MS } });
}, 120_000);
afterAll(() => platform?.close());
afterEach(() => {
  for (const { child } of [platform.latest, platform.sink]) child.kill('SIGCONT');
});

/** A pill whose bar of a second is long over, and who asks for it, differently each time. */
async function writeFirst() {
  const symbol = `COIN:${++symbols}`;
  const pill = makePill({ symbol });
  await platform.write([pill]);
  const from = pill.timestamp - 60e6;
  let asked = 0;
  const bars = async () => {
    const to = formatTimestamp(pill.timestamp + 60e6 + asked++);
    const query = `symbol=${symbol}&interval=1s&from=${formatTimestamp(from)}&to=${to}`;
    return (await platform.ask(`/api/analytics/bars?${query}`)).body;
  };
  const history = async () => {
    const query = `symbol=${symbol}&from=${formatTimestamp(from)}`;
    return (await platform.ask(`/api/pills?${query}`)).body;
  };
  return { symbol, bars, history, isOver: () => sleep(BACKFILL_AGE_MS + 1_000) };
}

test('latest processor and sink hang: no answer claims to have what was written since', async () => {
  const { symbol, bars, history, isOver } = await writeFirst();
  await platform.stored();
  const before = platform.end();
  for (const { child } of [platform.latest, platform.sink]) child.kill('SIGSTOP');
  await platform.write([makePill({ symbol })]);
  await isOver();
  for (const body of [await bars(), await history()]) {
    expect(body.as_of.position).toBe(before);
    expect(body.as_of.lag_ms).toBeGreaterThan(0);
  }
  const { data } = await bars();
  // What is missing might be of the time of this bar.
  expect(data.map(({ count, final }: { count: number; final: boolean }) => [count, final])).toEqual(
    [[1, false]],
  );
  for (const { child } of [platform.latest, platform.sink]) child.kill('SIGCONT');
  await waitFor('all to be claimed', async () => {
    const all = [await bars(), await history()];
    return all.every(({ as_of }) => as_of.lag_ms === 0) && (await bars()).data.every(isFinal);
  });
  for (const { as_of } of [await bars(), await history()]) {
    expect(as_of).toMatchObject({ position: platform.end(), lag_ms: 0 });
  }
}, 60_000);

test('the latest processor alone hangs: all is claimed when it is there, not before', async () => {
  const { symbol, bars, history } = await writeFirst();
  await platform.stored();
  platform.latest.child.kill('SIGSTOP');
  await platform.write([makePill({ symbol })]);
  await sleep(KNOWN_FOR_MS);
  for (const ask of [bars, history]) {
    await waitFor('all to be claimed', async () => {
      const { as_of, data } = await ask();
      if (as_of.lag_ms !== 0) return `${as_of.lag_ms}`;
      expect(as_of.position).toBe(platform.end());
      return data.length > 0;
    });
  }
}, 60_000);

test('the end of the log has no effect: all is claimed all the same', async () => {
  const { symbol, bars } = await writeFirst();
  await platform.write([makePill({ symbol, confidence: 101 })]);
  await sleep(KNOWN_FOR_MS);
  await waitFor('all to be claimed', async () => (await bars()).as_of.lag_ms === 0);
  expect((await bars()).as_of.position).toBe(platform.end());
}, 60_000);

function isFinal({ final }: { readonly final: boolean }): boolean {
  return final;
}
