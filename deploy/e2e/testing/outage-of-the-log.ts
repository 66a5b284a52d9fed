import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { createClient } from '../../../sdk/index.ts';
import { makePill } from '../../../testing/pills.ts';
import type { Poster } from '../../../testing/poster.ts';
import type { Stack } from '../../../testing/stack.ts';
import { waitFor } from '../../../testing/wait.ts';

const OUTAGE_MS = 30_000;

/** Takes the log away for 30 s under load. */
export async function outliveOutageOfTheLog(stack: Stack, poster: Poster): Promise<void> {
  const symbols = ['AWAY1.T', 'AWAY2.T', 'AWAY3.T'];
  const { api, stream: streamUrl } = stack.addresses();
  const { pro: key } = stack.demoKeys();
  const client = createClient({ apiUrl: api, streamUrl, key });
  const stream = client.stream({ symbols });
  const reasons = async () => (await client.verify(symbols[0]!)).reasons.map(({ code }) => code);
  const received: { readonly symbol: string; readonly id: string }[] = [];
  const notices: string[] = [];
  let opened = 0;
  stream.on('pill', ({ symbol, id }) => received.push({ symbol, id }));
  stream.on('gap', (gap) => notices.push(`gap ${gap.reason}`));
  stream.on('open', () => {
    opened += 1;
  });
  stream.on('status', ({ component, state }) => notices.push(`${component} ${state}`));
  await waitFor('the stream to be live', () => opened > 0);

  const sent = new Map<string, string[]>(symbols.map((symbol) => [symbol, []]));
  let isPosting = true;
  const senders = symbols.map(async (symbol) => {
    while (isPosting) {
      const pill = makePill({ symbol });
      // Retries until the pill is acknowledged, and only then sends the next pill, so that the
      // order is known.
      await poster.post(pill);
      sent.get(symbol)!.push(pill.id);
      await sleep(20);
    }
  });
  const count = () => [...sent.values()].reduce((sum, ids) => sum + ids.length, 0);
  await waitFor('some pills', () => received.length >= 30);

  const broker = stack.pidOf('kafka');
  process.kill(broker, 'SIGSTOP');
  try {
    await waitFor('the notice of the outage', () => notices.includes('log down'));
    await sleep(OUTAGE_MS);
    expect(stream.state).toBe('live');
    // Market verify depends on the log, and says that it is unavailable.
    expect(await reasons()).toContain('log_unavailable');
    expect(await client.usable(symbols[0]!)).toMatchObject({ usable: false });
  } finally {
    process.kill(broker, 'SIGCONT');
  }
  await waitFor('the notice that the outage has ended', () => notices.includes('log up'), 60_000);
  const before = count();
  await waitFor('pills to flow again', () => count() >= before + 30, 60_000);
  isPosting = false;
  await Promise.all(senders);

  await waitFor('all pills to arrive', () => received.length >= count());
  for (const [symbol, ids] of sent) {
    expect(received.filter((pill) => pill.symbol === symbol).map(({ id }) => id)).toEqual(ids);
  }
  // The state of the log is checked every 2 s.
  await waitFor(
    'the reason to disappear',
    async () => !(await reasons()).includes('log_unavailable'),
  );
  expect(opened).toBe(1);
  expect(notices).toEqual(['log down', 'log up']);
  stream.close();
}
