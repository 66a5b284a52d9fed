import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import { createPoster, type Poster } from '../../lib/testing/poster.ts';
import {
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../lib/testing/stack.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { createClient } from '../../sdk/index.ts';

const OUTAGE_MS = 30_000;

let stack: Stack;
let poster: Poster;

beforeAll(async () => {
  stack = await launchStack(await makeStackFolder());
  poster = createPoster(stack.addresses().ingest);
}, 150_000);

afterAll(async () => {
  await poster?.close();
  await stack?.stop();
  if (stack !== undefined) await removeStackFolder(stack.folder);
});

test('the log is away for 30 s: sockets stay, say so, then catch up in order', async () => {
  const symbols = ['AWAY1.T', 'AWAY2.T', 'AWAY3.T'];
  const { api, stream: streamUrl } = stack.addresses();
  const { pro: key } = stack.demoKeys();
  const client = createClient({ apiUrl: api, streamUrl, key });
  const stream = client.stream({ symbols });
  const doubts = async () => (await client.verify(symbols[0]!)).reasons.map(({ code }) => code);
  const got: { readonly symbol: string; readonly id: string }[] = [];
  const told: string[] = [];
  let opened = 0;
  stream.on('pill', ({ symbol, id }) => got.push({ symbol, id }));
  stream.on('gap', (gap) => told.push(`gap ${gap.reason}`));
  stream.on('open', () => {
    opened += 1;
  });
  stream.on('status', ({ component, state }) => told.push(`${component} ${state}`));
  await waitFor('the stream to be live', () => opened > 0);

  const sent = new Map<string, string[]>(symbols.map((symbol) => [symbol, []]));
  let isPosting = true;
  const senders = symbols.map(async (symbol) => {
    while (isPosting) {
      const pill = makePill({ symbol });
      // Tries until it is acknowledged; only then the next one, so that the order is known.
      await poster.post(pill);
      sent.get(symbol)!.push(pill.id);
      await sleep(20);
    }
  });
  const count = () => [...sent.values()].reduce((sum, ids) => sum + ids.length, 0);
  await waitFor('some pills', () => got.length >= 30);

  const broker = stack.pidOf('kafka');
  process.kill(broker, 'SIGSTOP');
  try {
    await waitFor('the outage to be told', () => told.includes('log down'));
    await sleep(OUTAGE_MS);
    expect(stream.state).toBe('live');
    // Market verify rests on the log: it says that it is away.
    expect(await doubts()).toContain('log_unavailable');
    expect(await client.usable(symbols[0]!)).toMatchObject({ usable: false });
  } finally {
    process.kill(broker, 'SIGCONT');
  }
  await waitFor('its end to be told', () => told.includes('log up'), 60_000);
  const before = count();
  await waitFor('pills to flow again', () => count() >= before + 30, 60_000);
  isPosting = false;
  await Promise.all(senders);

  await waitFor('all of them', () => got.length >= count());
  for (const [symbol, ids] of sent) {
    expect(got.filter((pill) => pill.symbol === symbol).map(({ id }) => id)).toEqual(ids);
  }
  // How the log is, is looked at every 2 s.
  await waitFor('the doubts to end', async () => !(await doubts()).includes('log_unavailable'));
  expect(opened).toBe(1);
  expect(told).toEqual(['log down', 'log up']);
  stream.close();
}, 240_000);
