import { expect, test } from 'vitest';
import { openLogEnds } from '../../../lib/kafka/log-ends.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { createNamespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { createLogEnd, type LogEnd } from './log-end.ts';

type Ends = ReadonlyMap<number, number> | undefined;

test('a record appended before the moment is not beyond the end', async () => {
  const namespace = await createNamespace();
  const ends = openLogEnds(namespace.client, topicName(namespace.name, 'pills'));
  const writer = await openPillWriter(namespace);
  const ask = createLogEnd(ends);
  try {
    const empty = await waitFor('the log to answer', async () => (await ask()) ?? false);
    expect([...empty.offsets.keys()]).toHaveLength(namespace.settings.partitions);
    expect(new Set(empty.offsets.values())).toEqual(new Set([-1]));
    const [ack] = await writer.write([makePill()]);
    const appended = nowMicros();
    const seen: LogEnd[] = [];
    await waitFor('an end that was read later', async () => {
      const end = (await ask())!;
      seen.push(end);
      return end.isCurrent && end.at >= appended;
    });
    expect(seen.at(-1)!.offsets.get(ack!.partition)).toBe(ack!.offset);
  } finally {
    await writer.close();
    await ends.close();
  }
});

test('the log does not answer: no end is current, but the last known end stays', async () => {
  let answer: Promise<Ends> = Promise.resolve(undefined);
  const ask = createLogEnd({ ask: () => answer });
  expect(await ask()).toBeUndefined();
  answer = Promise.resolve(new Map([[0, 6]]));
  const told = await waitFor('the end of the log', async () => (await ask()) ?? false);
  expect([[...told.offsets], told.isCurrent]).toEqual([[[0, 5]], true]);
  // The log hangs, but callers do not.
  answer = new Promise<Ends>(() => undefined);
  const old = await waitFor('the answer to be too old', async () => {
    const end = (await ask())!;
    return !end.isCurrent && end;
  });
  expect(old).toEqual({ ...told, isCurrent: false });
});
