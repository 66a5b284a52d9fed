import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMPATIBILITY, SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry';
import { schemaText, type WriterSchemas } from './avro.ts';
import { subjectName, TOPICS, type TopicId } from './topic-catalogue.ts';

/** Time for which an unknown schema id stays cached as unknown. A request costs 10 to 27 ms. */
const UNKNOWN_TTL_MS = 30_000;
/** Bound of ids cached as unknown: a producer of random ids must not fill the memory. */
const UNKNOWN_IDS_MAX = 10_000;

const REGISTER_TRIES = 5;
const REGISTER_PAUSE_MS = 200;

export type SchemaClient = ReturnType<typeof createSchemaClient>;

/**
 * A client of the schema registry that caches schemas and unknown ids.
 * @param address with user and password if the registry asks for them (RFC 7617); https is verified by
 *   the authorities of the PEM file `?sslrootcert=`, by default the public ones
 */
export function createSchemaClient(address: string, namespace: string) {
  const registry = new SchemaRegistry({
    ...connectionOf(address),
    // One attempt each: the callers retry themselves.
    retry: { retries: 0, initialRetryTimeInSecs: 0.05, maxRetryTimeInSecs: 1 },
  });
  const texts = new Map<number, string>();
  const unknownSince = new Map<number, number>();

  return {
    /**
     * Registers a topic's schema under `<topic>-value` with FULL_TRANSITIVE. A failure is repeated
     * after 200 ms, until `triesMax` have failed. @returns its id
     */
    async register(topic: TopicId, triesMax = REGISTER_TRIES): Promise<number> {
      const text = schemaText(TOPICS[topic].value);
      const subject = subjectName(namespace, topic);
      const register = () =>
        registry.register(
          { type: SchemaType.AVRO, schema: text },
          { subject, compatibility: COMPATIBILITY.FULL_TRANSITIVE },
        );
      // The library sets the compatibility of a new subject after its first version. A concurrent
      // registration by another process makes this call fail; a later attempt finds all in place.
      for (let tries = 1; ; tries += 1) {
        try {
          const { id } = await register();
          texts.set(id, text);
          return id;
        } catch (error) {
          if (tries >= triesMax) throw error;
          await sleep(REGISTER_PAUSE_MS);
        }
      }
    },

    /** Loads a writer schema by id. Rejects while the registry does not answer. */
    async load(id: number): Promise<void> {
      if (texts.has(id)) return;
      try {
        const schema = await registry.getSchema(id);
        texts.set(id, JSON.stringify(schema));
      } catch (error) {
        const status = (error as { status?: number }).status;
        if (status === undefined) {
          // The registry answered, but not with an Avro schema (JSON Schema, Protobuf).
          texts.set(id, '{"type":"unusable"}');
          return;
        }
        if (status !== 404) throw error;
        if (unknownSince.size >= UNKNOWN_IDS_MAX) unknownSince.clear();
        unknownSince.set(id, Date.now());
      }
    },

    /** The schemas loaded so far. */
    writerSchemas(id: number): ReturnType<WriterSchemas> {
      const text = texts.get(id);
      if (text !== undefined) return text;
      const since = unknownSince.get(id);
      if (since === undefined) return 'pending';
      if (Date.now() - since < UNKNOWN_TTL_MS) return 'unknown';
      unknownSince.delete(id);
      return 'pending';
    },
  };
}

function connectionOf(address: string) {
  const url = new URL(address);
  const [username, password] = [url.username, url.password].map(decodeURIComponent);
  const file = url.searchParams.get('sslrootcert');
  url.username = '';
  url.password = '';
  url.search = '';
  return {
    host: url.href.replace(/\/$/, ''),
    ...(username ? { auth: { username, password: password ?? '' } } : {}),
    ...(file === null ? {} : { agent: new Agent({ ca: readFileSync(file) }) }),
  };
}
