import { readFileSync } from 'node:fs';
import avro from 'avsc';
import { schemaFolder } from './folder.ts';
import type { Pill, PillRecord } from './pill.ts';
import type { LogPill } from './public-pill.ts';
import type { Micros } from './timestamp.ts';

/** The newest pill of a symbol, as stored in `pills.latest.v1`; see latest-pill.avsc. */
export interface LatestPill extends Pill {
  readonly epoch: string;
  readonly offset: number;
  readonly last_offset: number | null;
  readonly processed_offset: number;
  readonly prev_offset: number | null;
  readonly received_at: Micros;
  readonly source: string | null;
  readonly backfill: boolean;
}

/** A record without effect, and the reason; see rejected-record.avsc. */
export interface RejectedRecord {
  readonly epoch: string;
  readonly partition: number;
  readonly offset: number;
  readonly appended_at: Micros;
  readonly code: string;
  readonly reason: string;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly value_bytes: number;
  readonly value_sha256: string;
  readonly source: string | null;
}

/** What one run of an ingest process answered without writing to the log; see refusal-report.avsc. */
export interface RefusalReport {
  readonly reporter: string;
  readonly counts: readonly RefusalCount[];
  readonly samples: readonly RefusalSample[];
}

export interface RefusalCount {
  readonly since: Micros;
  readonly source: string;
  readonly code: string;
  readonly fault: string;
  readonly count: number;
}

export interface RefusalSample {
  readonly number: number;
  readonly at: Micros;
  readonly source: string;
  readonly code: string;
  readonly fault: string;
  readonly reason: string;
  readonly body: Buffer;
  readonly body_bytes: number;
}

/** Settings that decide effect; see topic-settings.avsc. */
export interface TopicSettings {
  readonly epoch: string;
  readonly created_at: Micros;
  readonly partitions: number;
  readonly repeat_window: number;
  readonly backfill_age_ms: number;
  readonly confidence_max: number;
  readonly symbols_max: number;
}

/** A pill in a binary frame of the stream; see stream-pills.avsc. */
export interface StreamPill extends LogPill {
  readonly prev_offset: number | null;
  readonly late: boolean;
  readonly replayed: boolean;
  readonly skipped: number;
}

/** Content of a binary frame of the stream; see stream-pills.avsc. */
export interface StreamPills {
  readonly sent_at: Micros;
  readonly pills: readonly StreamPill[];
}

/** Value type of each schema file. */
export interface SchemaValues {
  readonly pill: PillRecord;
  readonly 'latest-pill': LatestPill;
  readonly 'rejected-record': RejectedRecord;
  readonly 'refusal-report': RefusalReport;
  readonly 'topic-settings': TopicSettings;
  readonly 'stream-pills': StreamPills;
}
export type SchemaName = keyof SchemaValues;

/** Byte 0 of the Confluent wire format; then the schema id, 4 bytes big-endian, then Avro. */
const MAGIC_BYTE = 0;
const HEADER_BYTES = 5;

const types = new Map<SchemaName, avro.Type>();

/** Text of a schema file, as registered. */
export function schemaText(name: SchemaName): string {
  return readFileSync(new URL(`${name}.avsc`, schemaFolder), 'utf8');
}

/** Avro type of a schema file. Its `schema()` is the canonical form of the specification. */
export function typeOf(name: SchemaName): avro.Type {
  let type = types.get(name);
  if (type === undefined) {
    type = avro.Type.forSchema(JSON.parse(schemaText(name)), { wrapUnions: false });
    types.set(name, type);
  }
  return type;
}

export type Encode<T> = (value: T) => Buffer;

/** Encodes values of one schema in the Confluent wire format. */
export function createEncoder<N extends SchemaName>(name: N, id: number): Encode<SchemaValues[N]> {
  const type = typeOf(name);
  // One buffer for all calls: when it is too short, avsc returns by how much. Copying the used part
  // costs less than the two passes of Type.toBuffer.
  let scratch = Buffer.allocUnsafe(1024);
  return (value) => {
    let end = type.encode(value, scratch, HEADER_BYTES);
    if (end < 0) {
      scratch = Buffer.allocUnsafe(scratch.length - end + 1024);
      end = type.encode(value, scratch, HEADER_BYTES);
    }
    const bytes = Buffer.allocUnsafe(end);
    scratch.copy(bytes, HEADER_BYTES, HEADER_BYTES, end);
    bytes[0] = MAGIC_BYTE;
    bytes.writeInt32BE(id, 1);
    return bytes;
  };
}

export type Decoder<T> = {
  decode(bytes: Buffer | null): Decoded<T> | { readonly pendingSchema: number };
};

export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: DecodeFaultCode; readonly reason: string };

/** Codes of records that no schema decodes; they are part of `pills.rejected.v1`. */
export type DecodeFaultCode =
  | 'avro_empty'
  | 'avro_no_magic'
  | 'avro_malformed'
  | 'schema_unknown'
  | 'schema_incompatible';

/** Finds a writer schema by its id: the schema text, `unknown`, or `pending` when not loaded. */
export type WriterSchemas = (id: number) => string | 'unknown' | 'pending';

/**
 * Decodes values of any writer schema that resolves to the schema file, which is the reader's schema.
 * Never throws, whatever the bytes.
 */
export function createDecoder<N extends SchemaName>(name: N, writerSchemas: WriterSchemas) {
  const reader = typeOf(name);
  const resolvers = new Map<number, { type: avro.Type; resolver: avro.Resolver }>();
  const load = (id: number) => {
    const known = resolvers.get(id);
    if (known !== undefined) return known;
    const text = writerSchemas(id);
    if (text === 'pending' || text === 'unknown') return text;
    const writer = avro.Type.forSchema(JSON.parse(text), { wrapUnions: false });
    const entry = { type: writer, resolver: reader.createResolver(writer) };
    resolvers.set(id, entry);
    return entry;
  };
  return {
    /** @returns the value, a fault, or the id of a writer schema that must be loaded first */
    decode(bytes: Buffer | null): Decoded<SchemaValues[N]> | { readonly pendingSchema: number } {
      if (bytes === null || bytes.length === 0) return fault('avro_empty', 'No value.');
      if (bytes[0] !== MAGIC_BYTE || bytes.length < HEADER_BYTES) {
        return fault(
          'avro_no_magic',
          'The value is not in the Confluent wire format (byte 0, schema id).',
        );
      }
      const id = bytes.readInt32BE(1);
      let writer: ReturnType<typeof load>;
      try {
        writer = load(id);
      } catch (error) {
        return fault('schema_incompatible', `Schema ${id}: ${(error as Error).message}`);
      }
      if (writer === 'pending') return { pendingSchema: id };
      if (writer === 'unknown') return fault('schema_unknown', `No schema has the id ${id}.`);
      try {
        const body = bytes.subarray(HEADER_BYTES);
        return { ok: true, value: reader.fromBuffer(body, writer.resolver) as SchemaValues[N] };
      } catch (error) {
        return fault('avro_malformed', (error as Error).message);
      }
    },
  };
}

function fault(code: DecodeFaultCode, reason: string) {
  return { ok: false, code, reason: reason.slice(0, 500) } as const;
}
