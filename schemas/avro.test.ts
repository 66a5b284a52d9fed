import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createDecoder, createEncoder, type SchemaName, schemaText } from './avro.ts';
import { schemaFolder } from './folder.ts';

const writerSchemas = (id: number) => (id === 7 ? schemaText('pill') : 'unknown');

/** Golden bytes of released versions. Rows are never changed; a new version adds a row. */
interface Golden {
  readonly schema: SchemaName;
  /** The writer's schema file of that release, under fixtures. */
  readonly writer: string;
  readonly hex: string;
  readonly value: Record<string, unknown>;
}

const golden: Record<string, Golden> = JSON.parse(
  readFileSync(new URL('fixtures/golden.json', schemaFolder), 'utf8'),
);

/** The last row of each schema is its current version. */
const current = new Map(Object.entries(golden).map(([name, row]) => [row.schema, name]));

/** Bytes are written as hex in the fixtures. */
function revive(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(revive);
  if (typeof value !== 'object' || value === null) return value;
  if ('hex' in value) return Buffer.from(String(value.hex), 'hex');
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, revive(field)]));
}

describe('golden bytes of released versions', () => {
  test.each(Object.entries(golden))('%s decodes to the same value', (_, row) => {
    const writer = readFileSync(new URL(`fixtures/${row.writer}`, schemaFolder), 'utf8');
    const decoded = createDecoder(row.schema, () => writer).decode(Buffer.from(row.hex, 'hex'));
    // Later versions add fields, which have their defaults.
    expect(decoded).toEqual({
      ok: true,
      value: expect.objectContaining(revive(row.value) as object),
    });
  });

  test.each(Object.entries(golden).filter(([name, { schema }]) => current.get(schema) === name))(
    '%s equals the output of the current encoder',
    (_, row) => {
      const bytes = createEncoder(row.schema, 7)(revive(row.value) as never);
      expect(bytes.toString('hex')).toBe(row.hex);
    },
  );
});

/** avsc's bound of a long: one below 2^53 - 1, in the year 2255. */
const LONG_MAX = Number.MAX_SAFE_INTEGER - 1;

const pill = fc.record({
  id: fc.string({ unit: 'binary', minLength: 1, maxLength: 128 }).filter((id) => id.isWellFormed()),
  timestamp: fc.integer({ min: 0, max: LONG_MAX }),
  symbol: fc.stringMatching(/^[A-Z0-9^][A-Z0-9.:/_&=^-]{0,31}$/),
  gross_spread_percent: fc.double({ noNaN: true, noDefaultInfinity: true }),
  market_state: fc.string({ minLength: 1, maxLength: 32 }),
  confidence: fc.double({ min: 0, max: 100, noNaN: true }),
  received_at: fc.option(fc.integer({ min: 0, max: LONG_MAX })),
  source: fc.option(fc.string({ maxLength: 64 })),
  kind: fc.option(fc.string({ maxLength: 64 })),
});

describe('codec', () => {
  test('round trip: any pill decodes to itself', () => {
    const encode = createEncoder('pill', 7);
    const decoder = createDecoder('pill', writerSchemas);
    fc.assert(
      fc.property(pill, (value) => {
        expect(decoder.decode(encode(value))).toEqual({ ok: true, value });
      }),
    );
  });

  test('a returned buffer is never overwritten', () => {
    const encode = createEncoder('pill', 7);
    fc.assert(
      fc.property(pill, pill, (first, second) => {
        const bytes = encode(first);
        const copy = Buffer.from(bytes);
        encode(second);
        expect(bytes.equals(copy)).toBe(true);
      }),
    );
  });

  test('any bytes give a value or a named fault, never an exception', () => {
    const decoder = createDecoder('pill', writerSchemas);
    const header = Buffer.from([0, 0, 0, 0, 7]);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (noise, withHeader) => {
        const bytes = withHeader ? Buffer.concat([header, noise]) : Buffer.from(noise);
        const decoded = decoder.decode(bytes);
        expect('ok' in decoded).toBe(true);
      }),
    );
  });

  test('bytes after the record are refused', () => {
    const encode = createEncoder('pill', 7);
    const [value] = fc.sample(pill, 1);
    const bytes = Buffer.concat([encode(value!), Buffer.from([0])]);
    const decoded = createDecoder('pill', writerSchemas).decode(bytes);
    expect(decoded).toMatchObject({ ok: false, code: 'avro_malformed' });
  });

  test.each([
    ['{"type":"string"}', 'schema_incompatible'],
    ['{"type":"unusable"}', 'schema_incompatible'],
    ['unknown', 'schema_unknown'],
  ])('a writer schema %s gives %s', (text, code) => {
    const decoder = createDecoder('pill', () => text);
    expect(decoder.decode(Buffer.from([0, 0, 0, 0, 9, 2]))).toMatchObject({ ok: false, code });
  });

  test('every field of every schema is documented', () => {
    for (const name of [
      ...['pill', 'latest-pill', 'rejected-record', 'topic-settings'],
      'refusal-report',
    ] as SchemaName[]) {
      const schema = JSON.parse(schemaText(name));
      expect(schema.doc, name).toMatch(/\w/);
      for (const field of schema.fields) expect(field.doc, `${name}.${field.name}`).toMatch(/\w/);
    }
  });
});
