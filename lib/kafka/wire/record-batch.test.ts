import { createRequire } from 'node:module';
import zlib from 'node:zlib';
import crc32c from 'crc-32/crc32c.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WireWriter } from './bytes.ts';
import { BatchFaultError, decodeRecordSet, encodeRecordBatch } from './record-batch.ts';

const load = createRequire(import.meta.url);
// The library's own codec, as the other side of both directions.
const { RecordBatch } = load('kafkajs/src/protocol/recordBatch/v0') as {
  RecordBatch(batch: object): Promise<{ readonly buffer: Buffer }>;
};
const Record = load('kafkajs/src/protocol/recordBatch/record/v0') as (record: object) => unknown;
const Decoder = load('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => object;
const decodeByLibrary = load('kafkajs/src/protocol/recordBatch/v0/decoder') as (
  decoder: object,
) => Promise<{ records: { key: Buffer; value: Buffer; timestamp: string; offset: string }[] }>;

interface TestRecord {
  readonly key: string;
  readonly value: Buffer;
}

function encode(records: readonly TestRecord[], timeMs = 1_700_000_000_000): Buffer {
  const writer = new WireWriter(8);
  encodeRecordBatch(writer, records, timeMs);
  return Buffer.from(writer.view());
}

/** A batch as a broker stores it, by the library's encoder. */
async function stored(
  firstOffset: number,
  values: readonly (string | null)[],
  more: object = {},
): Promise<Buffer> {
  const records = values.map((value, offsetDelta) =>
    Record({ offsetDelta, key: 'k', value, timestampDelta: offsetDelta }),
  );
  const { buffer } = await RecordBatch({
    ...{ firstOffset, firstTimestamp: 1_000, maxTimestamp: 2_000, records },
    ...{ lastOffsetDelta: values.length - 1, ...more },
  });
  return Buffer.from(buffer);
}

/** Changes bytes of a batch, and its checksum too. */
function edit(batch: Buffer, change: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.from(batch);
  change(bytes);
  bytes.writeInt32BE(crc32c.buf(bytes.subarray(21)), 17);
  return bytes;
}

const ATTRIBUTES = 21;
/** The end of a transaction: 0 aborts, 1 commits. */
async function markerBatch(offset: number, producerId: number, type: number): Promise<Buffer> {
  const record = Record({ key: Buffer.from([0, 0, 0, type]), value: Buffer.alloc(6) });
  const { buffer } = await RecordBatch({
    ...{ firstOffset: offset, producerId, records: [record], transactional: true },
  });
  return edit(buffer, (batch) => batch.writeInt16BE(0b11_0000, ATTRIBUTES));
}
const textsOf = (bytes: Buffer, from = 0, aborted: Parameters<typeof decodeRecordSet>[2] = []) => {
  const { records, nextOffset } = decodeRecordSet(bytes, from, aborted);
  return { values: records.map(({ value }) => value?.toString()), nextOffset };
};
const recordsOf = fc.array(
  fc.record({
    key: fc.string({ unit: 'grapheme', maxLength: 200 }),
    value: fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
  }),
  { minLength: 1, maxLength: 200 },
);

describe('what is written', () => {
  test('is the bytes of the specification', () => {
    const bytes = encode([{ key: 'ab', value: Buffer.from('xyz') }], 0x0102030405);
    expect(bytes.toString('hex').match(/../g)!.join(' ')).toBe(
      [
        ...['00 00 00 00 00 00 00 00', '00 00 00 3d', 'ff ff ff ff', '02', 'e5 d0 f3 08'],
        ...['00 00', '00 00 00 00', '00 00 00 01 02 03 04 05', '00 00 00 01 02 03 04 05'],
        ...['ff ff ff ff ff ff ff ff', 'ff ff', 'ff ff ff ff', '00 00 00 01'],
        ...['16', '00', '00', '00', '04', '61 62', '06', '78 79 7a', '00'],
      ].join(' '),
    );
  });

  test('any records: the library and we read the same', async () => {
    await fc.assert(
      fc.asyncProperty(recordsOf, async (records) => {
        const bytes = encode(records);
        const theirs = await decodeByLibrary(new Decoder(bytes));
        const ours = decodeRecordSet(bytes, 0).records;
        for (const [at, { key, value }] of records.entries()) {
          const { offset, appendedAt } = ours[at]!;
          expect([offset, appendedAt]).toEqual([at, 1_700_000_000_000_000]);
          for (const read of [theirs.records[at]!, ours[at]!]) {
            expect(read.key?.toString()).toBe(key.toWellFormed());
            expect(read.value?.equals(value)).toBe(true);
          }
          expect(theirs.records[at]).toMatchObject({ timestamp: '1700000000000', offset: `${at}` });
        }
        expect([theirs.records.length, ours.length]).toEqual([records.length, records.length]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('what is read', () => {
  test('several batches, with holes, from an offset within one', async () => {
    const bytes = Buffer.concat([
      await stored(10, ['a', 'b', 'c']),
      await stored(20, ['d', null], { lastOffsetDelta: 7 }),
    ]);
    const { records, nextOffset } = decodeRecordSet(bytes, 11);
    expect(records.map(({ offset, value, appendedAt }) => [offset, value, appendedAt])).toEqual([
      [11, Buffer.from('b'), 1_001_000],
      [12, Buffer.from('c'), 1_002_000],
      [20, Buffer.from('d'), 1_000_000],
      [21, null, 1_001_000],
    ]);
    expect(nextOffset).toBe(28);
  });

  test('the append time of the broker is the time of each record', async () => {
    const bytes = edit(await stored(0, ['a', 'b']), (batch) => batch.writeInt16BE(8, ATTRIBUTES));
    const { records } = decodeRecordSet(bytes, 0);
    expect(records.map(({ appendedAt }) => appendedAt)).toEqual([2_000_000, 2_000_000]);
  });

  test.each([
    ['gzip', 1, zlib.gzipSync],
    ['zstd', 4, (zlib as { zstdCompressSync?: typeof zlib.gzipSync }).zstdCompressSync],
  ])('a batch compressed by %s, where Node has it', async (_, codec, compress) => {
    const plain = await stored(5, ['one', 'two']);
    const compressed = (compress ?? ((bytes: Buffer) => bytes))(plain.subarray(61));
    const bytes = edit(Buffer.concat([plain.subarray(0, 61), compressed]), (batch) => {
      batch.writeInt32BE(batch.length - 12, 8);
      batch.writeInt16BE(codec, ATTRIBUTES);
    });
    if (compress === undefined) expect(() => textsOf(bytes)).toThrow(/zstd; set the topic/);
    else expect(textsOf(bytes)).toEqual({ values: ['one', 'two'], nextOffset: 7 });
  });

  test.each([
    ['snappy', 2],
    ['lz4', 3],
    ['codec 7', 7],
  ])('compression by %s is refused with advice', async (name, codec) => {
    const bytes = edit(await stored(0, ['a']), (batch) => batch.writeInt16BE(codec, ATTRIBUTES));
    expect(() => textsOf(bytes)).toThrow(BatchFaultError);
    expect(() => textsOf(bytes)).toThrow(`its compression is ${name}; set the topic's compression`);
  });

  test('aborted transactions and markers do not count, other producers between them do', async () => {
    const of = (producerId: number, transactional = true) => ({ producerId, transactional });
    const bytes = Buffer.concat([
      await stored(0, ['of 7, aborted'], of(7)),
      await stored(1, ['of 8, committed'], of(8)),
      await stored(2, ['without a transaction'], of(7, false)),
      await markerBatch(3, 7, 0),
      await stored(4, ['of 7, committed'], of(7)),
      await markerBatch(5, 7, 1),
      await markerBatch(6, 8, 1),
    ]);
    expect(textsOf(bytes, 0, [{ producerId: 7, firstOffset: 0 }])).toEqual({
      values: ['of 8, committed', 'without a transaction', 'of 7, committed'],
      nextOffset: 7,
    });
  });
});

describe('a fault is told, and nothing is skipped:', () => {
  test('a part of the last batch is left for the next fetch', async () => {
    const [first, second] = [await stored(0, ['a', 'b']), await stored(2, ['c'])];
    const both = Buffer.concat([first, second]);
    for (let length = first.length; length < both.length; length += 1) {
      expect(textsOf(both.subarray(0, length))).toEqual({ values: ['a', 'b'], nextOffset: 2 });
    }
    for (let length = 1; length < first.length; length += 1) {
      expect(() => textsOf(first.subarray(0, length)), `${length}`).toThrow(BatchFaultError);
    }
    expect(textsOf(Buffer.alloc(0), 9)).toEqual({ values: [], nextOffset: 9 });
  });

  test('every changed byte that the checksum covers is found', async () => {
    const whole = await stored(3, ['value']);
    for (let at = 17; at < whole.length; at += 1) {
      const bytes = Buffer.from(whole);
      bytes[at]! ^= 1;
      expect(() => textsOf(bytes), `byte ${at}`).toThrow(/offset 3 does not match its checksum/);
    }
  });

  test.each([0, 1, 3])('format %i is refused', async (magic) => {
    const bytes = await stored(3, ['value']);
    bytes[16] = magic;
    expect(() => textsOf(bytes)).toThrow(`offset 3 has format ${magic}; only format 2 is read`);
  });

  test('any bytes behind a right checksum: records or a fault, in bounded time', async () => {
    const whole = await stored(0, ['one', 'two', 'three']);
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 0, maxLength: 60 }), fc.nat(40), (noise, at) => {
        const bytes = edit(whole, (batch) => {
          batch.set(noise.subarray(0, batch.length - ATTRIBUTES - at), ATTRIBUTES + at);
        });
        try {
          decodeRecordSet(bytes, 0);
        } catch (error) {
          expect(error).toBeInstanceOf(BatchFaultError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
