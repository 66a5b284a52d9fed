import type { Decoded, Decoder } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import type { Log } from '../log/log.ts';
import { retryForever } from '../timing/backoff.ts';

/**
 * Decodes a value; loads its writer schema first when that is not cached. Waits while the registry is
 * away: a failed schema request never rejects a record.
 * @throws only when `signal` aborts.
 */
export function decodeWith<T>(
  decoder: Decoder<T>,
  schemas: SchemaClient,
  value: Buffer | null,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Decoded<T> | Promise<Decoded<T>> {
  const decoded = decoder.decode(value);
  if (!('pendingSchema' in decoded)) return decoded;
  const { pendingSchema: id } = decoded;
  return retryForever(() => schemas.load(id), {
    firstMs: 100,
    maxMs: 2_000,
    signal,
    onError: (error, attempts) =>
      log.warn({ err: error, id, attempts }, 'the registry does not answer; retrying'),
  }).then(() => decodeWith(decoder, schemas, value, { signal, log }));
}
