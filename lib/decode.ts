import type { Decoded, Decoder } from '../schemas/avro.ts';
import type { SchemaClient } from '../schemas/registry.ts';
import { retryForever } from './backoff.ts';
import type { Log } from './log.ts';

/**
 * Decodes a value, loading its writer schema first when it is not known yet. Waits as long as the
 * registry is silent: a record is never refused because a look-up failed.
 * @throws only when `signal` aborts.
 */
export function decodeWith<T>(
  decoder: Decoder<T>,
  schemas: SchemaClient,
  value: Buffer | null,
  wait: { readonly signal: AbortSignal; readonly log: Log },
): Decoded<T> | Promise<Decoded<T>> {
  const decoded = decoder.decode(value);
  return 'pendingSchema' in decoded
    ? loadAndDecode(decoder, schemas, value, decoded.pendingSchema, wait)
    : decoded;
}

async function loadAndDecode<T>(
  decoder: Decoder<T>,
  schemas: SchemaClient,
  value: Buffer | null,
  id: number,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<Decoded<T>> {
  await retryForever(() => schemas.load(id), {
    firstMs: 100,
    maxMs: 2_000,
    signal,
    onError: (error, attempts) =>
      log.warn({ err: error, id, attempts }, 'the registry does not answer; waiting'),
  });
  return decodeWith(decoder, schemas, value, { signal, log });
}
