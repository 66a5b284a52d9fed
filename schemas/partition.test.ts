import fc from 'fast-check';
import { Partitioners } from 'kafkajs';
import { expect, test } from 'vitest';
import { createPartitioner, murmur2, partitionOf } from './partition.ts';

// Vectors of Kafka's own test: org.apache.kafka.common.utils.UtilsTest.testMurmur2.
test.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
])('murmur2 of %s is Kafka’s', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash);
});

test('any key has the partition that kafkajs selects', () => {
  const partition = Partitioners.DefaultPartitioner();
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.integer({ min: 1, max: 64 }),
      (key, count) => {
        const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
          partitionErrorCode: 0,
          partitionId,
          leader: 1,
          replicas: [1],
          isr: [1],
        }));
        const theirs = partition({ topic: 't', partitionMetadata, message: { key, value: null } });
        expect(partitionOf(key, count)).toBe(theirs);
        expect(createPartitioner(count)(key)).toBe(theirs);
      },
    ),
  );
});
