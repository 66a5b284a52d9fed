import avro from 'avsc';
import { describe, expect, test } from 'vitest';
import { typeOf } from './avro.ts';
import { crc64Avro, singleObjectHeader } from './single-object.ts';

describe('the fingerprint of a schema', () => {
  // From Avro's own conformance file share/test/data/schema-tests.txt.
  test.each([
    ['"null"', 7195948357588979594n],
    ['"int"', 8247732601305521295n],
    ['"boolean"', -6970731678124411036n],
    ['"string"', -8142146995180207161n],
  ])('%s', (text, signed) => {
    expect(BigInt.asIntN(64, crc64Avro(Buffer.from(text)))).toBe(signed);
  });

  test('is that of the canonical form, without docs and logical types', () => {
    const plain = { type: 'record', name: 'a.R', fields: [{ name: 'f', type: 'long' }] };
    const dressed = {
      type: 'record',
      namespace: 'a',
      name: 'R',
      doc: 'A record.',
      fields: [
        { name: 'f', doc: 'A time.', type: { type: 'long', logicalType: 'timestamp-micros' } },
      ],
    };
    const header = (schema: object) =>
      singleObjectHeader(avro.Type.forSchema(schema as avro.Schema));
    expect(header(dressed)).toEqual(header(plain));
    const canonical = '{"name":"a.R","type":"record","fields":[{"name":"f","type":"long"}]}';
    expect(header(plain).readBigUInt64LE(2)).toBe(crc64Avro(Buffer.from(canonical)));
  });

  test('of the stream never changes, because customers rely on it', () => {
    expect(singleObjectHeader(typeOf('stream-pills')).toString('hex')).toBe('c30193fb7f6c427f175b');
  });
});
