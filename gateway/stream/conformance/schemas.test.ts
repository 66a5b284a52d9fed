import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { partitionOf } from '../../../schemas/partition.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { SERVER_FRAME_SCHEMAS } from '../protocol/server-frame-schemas.ts';
import { statusFrame } from '../protocol/server-frames.ts';
import { faultOfFrame } from '../testing/frame-check.ts';
import { closeClients, connect } from '../testing/stream-client.ts';
import { startTestStream, type TestStream } from './testing/test-stream.ts';

let stream: TestStream;
let writer: PillWriter;

beforeAll(async () => {
  stream = await startTestStream();
  writer = await openPillWriter(stream.namespace);
});

afterEach(closeClients);

afterAll(async () => {
  await writer?.close();
  await stream?.close();
});

/** A symbol in each of two partitions. */
const [HERE, THERE] = [0, 1].map((partition) => {
  for (let n = 1; ; n += 1) if (partitionOf(`S${n}.T`, 3) === partition) return `S${n}.T`;
}) as [string, string];

test('every frame of a session matches its schema, and every type occurs', async () => {
  await writer.write([HERE, THERE].map((symbol) => makePill({ symbol })));
  const client = await connect(stream.url, { key: stream.key });
  const { epoch } = await client.until('welcome');
  await waitFor('the pills to be known', async () => {
    client.send({ op: 'subscribe', id: '1', symbols: [HERE, THERE, 'a', 'TEST:NEVER'] });
    const { never_seen } = await client.until('subscribed');
    await client.until('live');
    if (!never_seen.includes(HERE) && !never_seen.includes(THERE)) return true;
    await sleep(200); // the frames of a connection are limited
    return false;
  });
  await writer.write([makePill({ symbol: HERE })]);
  await client.until('pill');
  await writer.write(Array.from({ length: 50 }, () => makePill({ symbol: HERE })));
  await client.until('pills');
  client.send({ op: 'ping', id: '2', t: 1.5 });
  client.send({ op: 'ping', x: 1 });
  client.send({ op: 'unsubscribe', id: '3', symbols: [THERE] });
  await client.until('unsubscribed');
  // A resume that succeeds, and one from a position ahead of the log.
  client.send({ op: 'subscribe', symbols: [HERE], resume: `${epoch}:` });
  expect(await client.until('subscribed')).toMatchObject({ recovered: true });
  client.send({ op: 'subscribe', symbols: [THERE], resume: `${epoch}:0-999999` });
  expect(await client.until('subscribed')).toMatchObject({ reason: 'position_ahead' });
  await client.until('gap');
  await client.until('heartbeat');
  for (let n = 0; n < 60; n += 1) client.send({ op: 'ping' });
  expect(await client.closed).toMatchObject({ code: 4006 });
  const last = await connect(stream.url, { key: stream.key });
  await last.until('welcome');
  await stream.process.stop();
  await last.until('drain');

  const frames = [...client.frames, ...last.frames];
  expect(frames.map(faultOfFrame).filter(Boolean)).toEqual([]);
  const seen = new Set<string>(frames.map(({ type }) => type));
  // Only a real outage of the log sends `status`, so its frame is checked as built.
  const status = [{ state: 'down', since: 0 } as const, { state: 'up', since: 0 } as const];
  for (const one of status) {
    const frame = JSON.parse(statusFrame(1_000_000, one).toString());
    expect(faultOfFrame(frame)).toBeUndefined();
    seen.add(frame.type);
  }
  expect([...seen].sort()).toEqual(Object.keys(SERVER_FRAME_SCHEMAS).sort());
});
