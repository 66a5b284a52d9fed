import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makePill, openPillWriter, type PillWriter } from '../../../lib/testing/pills.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { partitionOf } from '../../../schemas/partition.ts';
import { SERVER_FRAME_SCHEMAS } from '../contract/frame-schemas.ts';
import { statusFrame } from '../live/frames.ts';
import { closeClients, connect } from '../testing/client.ts';
import { faultOfFrame } from '../testing/frame-check.ts';
import { startTestStream, type TestStream } from './testing/server.ts';

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

test('every frame of a session is as its schema says, and every kind of it comes', async () => {
  await writer.write([HERE, THERE].map((symbol) => makePill({ symbol })));
  const client = await connect(stream.url, { key: stream.key });
  const { epoch } = await client.until('welcome');
  await waitFor('the pills to be known', async () => {
    client.send({ op: 'subscribe', id: '1', symbols: [HERE, THERE, 'a', 'TEST:NEVER'] });
    const { never_seen } = await client.until('subscribed');
    await client.until('live');
    return !never_seen.includes(HERE) && !never_seen.includes(THERE);
  });
  await writer.write([makePill({ symbol: HERE })]);
  await client.until('pill');
  await writer.write(Array.from({ length: 50 }, () => makePill({ symbol: HERE })));
  await client.until('pills');
  client.send({ op: 'ping', id: '2', t: 1.5 });
  client.send({ op: 'ping', x: 1 });
  client.send({ op: 'unsubscribe', id: '3', symbols: [THERE] });
  await client.until('unsubscribed');
  // A resume that was reached, and one from a place that the log has not come to.
  client.send({ op: 'subscribe', symbols: [HERE], resume: `${epoch}:` });
  expect(await client.until('subscribed')).toMatchObject({ recovered: true });
  client.send({ op: 'subscribe', symbols: [THERE], resume: `${epoch}:0-999999` });
  expect(await client.until('subscribed')).toMatchObject({ reason: 'position_ahead' });
  await client.until('gap');
  await client.until('heartbeat');
  for (let n = 0; n < 30; n += 1) client.send({ op: 'ping' });
  expect(await client.closed).toMatchObject({ code: 4006 });
  const last = await connect(stream.url, { key: stream.key });
  await last.until('welcome');
  await stream.process.stop();
  await last.until('drain');

  const frames = [...client.frames, ...last.frames];
  expect(frames.map(faultOfFrame).filter(Boolean)).toEqual([]);
  const seen = new Set<string>(frames.map(({ type }) => type));
  // That the log is away is told by a real outage only; its frame is checked as it is made.
  const status = [{ state: 'down', since: 0 } as const, { state: 'up', since: 0 } as const];
  for (const one of status) {
    const frame = JSON.parse(statusFrame(1_000_000, one).toString());
    expect(faultOfFrame(frame)).toBeUndefined();
    seen.add(frame.type);
  }
  expect([...seen].sort()).toEqual(Object.keys(SERVER_FRAME_SCHEMAS).sort());
});
