import type { FastifyRequest } from 'fastify';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { Credentials } from '../../http/generator-credentials.ts';
import type { Refusal } from '../../http/problems.ts';

/**
 * Who may ask as a generator: the credentials of ingest; anyone, where ingest is open to this machine
 * alone (`open`); nobody, if the API does not know the credentials (`unknown`).
 */
export type Generators = Credentials | 'open' | 'unknown';

/** The generator of a request; without a source, where all is open, it may see all sources. */
export interface Generator {
  readonly source?: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    generator: Generator | undefined;
  }
}

/** Identifies the generator by the Authorization header. */
export function identifyGenerator(
  generators: Generators,
  { headers }: FastifyRequest,
): Generator | { readonly refusal: Refusal } {
  if (generators === 'open') return {};
  if (generators === 'unknown') return { refusal: ['generator_credentials_off', {}] };
  // Node drops the second of two headers of this name, so the first one is checked.
  const verdict = generators.check(headers.authorization, nowMicros());
  if (verdict.kind === 'known') return { source: verdict.name };
  return { refusal: [`credential_${verdict.kind}`, {}] };
}

/** The generator of a route with its rule. @throws on any other route, which is a bug */
export function generatorOf({ generator }: FastifyRequest): Generator {
  if (generator === undefined) throw new Error('The route has no generator rule.');
  return generator;
}
