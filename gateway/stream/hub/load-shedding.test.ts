import { expect, test } from 'vitest';
import { createModel, type FakeSocket } from '../testing/model.ts';
import { framesOf, pillsOf } from '../testing/stream-client.ts';
import { createConnections, HEARTBEAT_SLOT_MS } from './open-connections.ts';

const QUEUE_BYTES_MAX = 100_000;

/** One socket that reads, and several that do not, each with a larger queue than the one before. */
function crowd(deafCount: number) {
  const model = createModel();
  const sessions = createConnections({
    ...{ heartbeatMs: 3_600_000, startMs: 0, beforeBeats: model.hub.flush },
    queueBytesMax: QUEUE_BYTES_MAX,
  });
  const come = (windowBytes: number): FakeSocket => {
    const socket = model.connect(windowBytes);
    sessions.add(socket.connection!);
    const subscribe = { op: 'subscribe', symbols: ['AA'], snapshot: false };
    socket.connection!.receive(Buffer.from(JSON.stringify(subscribe)), false);
    return socket;
  };
  const publish = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      model.publish([{ symbol: 'AA' }]);
      model.pass(1);
    }
  };
  const reader = come(1e9);
  const deaf: FakeSocket[] = [];
  for (let n = 0; n < deafCount; n += 1) {
    deaf.unshift(come(0));
    publish(50);
  }
  const waiting = () => {
    let bytes = 0;
    for (const { connection, closed } of deaf) bytes += closed ? 0 : connection!.queueBytes;
    return bytes;
  };
  return { model, sessions, reader, deaf, waiting, publish };
}

test('over the bound of the process, only the largest queues are closed, with their position', () => {
  const { model, sessions, reader, deaf, waiting } = crowd(10);
  const before = waiting();
  expect(before).toBeGreaterThan(QUEUE_BYTES_MAX);
  const sizes = deaf.map(({ connection }) => connection!.queueBytes);
  expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
  sessions.tick(HEARTBEAT_SLOT_MS);

  const gone = deaf.filter(({ closed }) => closed !== undefined);
  expect(waiting()).toBeLessThanOrEqual(QUEUE_BYTES_MAX);
  // Without the smallest closed queue the total would exceed the bound.
  expect(waiting() + sizes[deaf.indexOf(gone[0]!)]!).toBeGreaterThan(QUEUE_BYTES_MAX);
  expect(gone).toEqual(deaf.slice(-gone.length));
  for (const socket of gone) {
    expect(socket.closed).toEqual({ code: 4001, reason: 'slow_consumer' });
    const [error] = framesOf(socket.frames, 'error');
    expect(error).toMatchObject({ code: 'slow_consumer', fatal: true, retry_after_ms: 500 });
    // A resume from there misses nothing and brings no duplicates.
    const got = socket.frames.flatMap(pillsOf).map(({ cursor }) => cursor);
    const back = model.connect(1e9);
    const request = { op: 'subscribe', symbols: ['AA'], resume: error!.position };
    back.connection!.receive(Buffer.from(JSON.stringify(request)), false);
    got.push(...back.frames.flatMap(pillsOf).map(({ cursor }) => cursor));
    const own = reader.frames.flatMap(pillsOf).map(({ cursor }) => cursor);
    expect(got).toEqual(own.slice(-got.length));
    expect(got.length).toBeGreaterThan(50);
  }
  expect(reader.closed).toBeUndefined();
});

test('below the bound no connection is closed', () => {
  const { sessions, deaf, waiting } = crowd(3);
  expect(waiting()).toBeGreaterThan(0);
  sessions.tick(HEARTBEAT_SLOT_MS);
  expect(deaf.map(({ closed }) => closed)).toEqual([undefined, undefined, undefined]);
});
