import { expect, test } from 'vitest';
import { type CpuProfile, summariseProfile } from './areas.ts';
import { microsPerPill } from './table.ts';

/** A tree of frames: name, file, µs of its own, below which one. */
function profileOf(
  frames: readonly (readonly [name: string, url: string, micros: number, parent: number])[],
): CpuProfile {
  return {
    nodes: frames.map(([functionName, url], id) => ({
      id,
      callFrame: { functionName, url, lineNumber: 9 },
      children: frames.flatMap(([, , , parent], child) => (parent === id ? [child] : [])),
    })),
    samples: frames.map((_, id) => id),
    timeDeltas: frames.map(([, , micros]) => micros),
  };
}

test.each([
  ['strict-json', 'file:///x/dist/lib/strict-json.js', 'JSON, validation'],
  ['pill', 'file:///x/dist/schemas/pill.js', 'JSON, validation'],
  ['partition', 'file:///x/dist/schemas/partition.js', 'intake'],
  ['avro', 'file:///x/dist/schemas/avro.js', 'Avro'],
  ['avsc', 'file:///x/node_modules/avsc/lib/types.js', 'Avro'],
  ['kafkajs', 'file:///x/node_modules/kafkajs/src/network/connection.js', 'Kafka client'],
  ['producer', 'file:///x/dist/lib/kafka/producer.js', 'Kafka client'],
  ['fastify', 'file:///x/node_modules/fastify/lib/reply.js', 'HTTP'],
  ['its JSON', 'file:///x/node_modules/secure-json-parse/index.js', 'JSON, validation'],
  ['node:http', 'node:_http_outgoing', 'HTTP'],
  ['receive', 'file:///x/dist/gateway/ingest/receive.js', 'HTTP'],
  ['intake', 'file:///x/dist/gateway/ingest/intake.js', 'intake'],
  ['metrics', 'file:///x/node_modules/prom-client/lib/counter.js', 'metrics'],
  ['a stream', 'node:internal/streams/readable', 'Node, unassigned'],
])('%s counts as its area', (_, url, area) => {
  const { areas } = summariseProfile(profileOf([['f', url, 7, -1]]));
  expect(areas).toEqual({ [area]: 7 });
});

test('a socket written to counts where it was called from', () => {
  const { areas, busyMicros } = summariseProfile(
    profileOf([
      ['(root)', '', 0, -1],
      ['end', 'node:_http_outgoing', 1, 0],
      ['_write', 'node:net', 2, 1],
      ['writeLatin1String', '', 30, 2],
      ['send', 'file:///x/node_modules/kafkajs/src/network/connection.js', 4, 0],
      ['_write', 'node:net', 8, 4],
      ['writev', '', 100, 5],
    ]),
  );
  expect(areas).toEqual({ HTTP: 33, 'Kafka client': 112 });
  expect(busyMicros).toBe(145);
});

test('idle time is nobody’s; garbage and the kernel have areas of their own', () => {
  const { areas, busyMicros, functions } = summariseProfile(
    profileOf([
      ['(root)', '', 5, -1],
      ['(idle)', '', 1_000, 0],
      ['(program)', '', 20, 0],
      ['(garbage collector)', '', 3, 0],
      ['parse', 'file:///x/dist/lib/strict-json.js', 40, 0],
    ]),
  );
  expect(areas).toEqual({ 'kernel, libuv': 20, garbage: 3, 'JSON, validation': 40 });
  expect(busyMicros).toBe(63);
  expect(functions[0]).toEqual({ name: 'parse lib/strict-json.js:10', micros: 40 });
});

test.each([
  // 60 µs were sampled as busy, 30 of them in the area; 10 pills.
  [null, 3],
  [60, 3],
  [40, 2], // a third of the samples waited for a core
  [120, 6], // other threads took as much again
])('with %j CPU µs by the kernel half of the samples are %d µs a pill', (cpuMicros, micros) => {
  expect(microsPerPill(30, { busyMicros: 60, cpuMicros, pills: 10 })).toBeCloseTo(micros, 9);
});
