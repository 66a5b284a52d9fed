import type { Log } from '../../lib/log/log.ts';
import type { Keyring } from '../access/keyring.ts';
import type { Pepper } from '../access/pepper.ts';
import { createSeal } from '../access/sealing.ts';
import { createDocumentFetcher } from '../webhooks/send/document-fetcher.ts';
import type { Egress } from '../webhooks/send/egress.ts';
import { type Authenticator, createAuthenticator } from './authenticator.ts';
import { createJwksFetch } from './jwks.ts';
import { createJwksCache } from './jwks-cache.ts';

/** Opens the verifier of a process: schemes from the keyring, keys of issuers behind the wall. */
export function openAuthenticator(of: {
  readonly keyring: Pick<Keyring, 'scheme' | 'useNonce'>;
  readonly pepper: Pepper;
  readonly egress: Egress;
  readonly log: Log;
}): Authenticator {
  const { keyring, pepper, egress, log } = of;
  const jwks = createJwksCache({ fetch: createJwksFetch(createDocumentFetcher(egress)), log });
  return createAuthenticator({ keyring, jwks, seal: createSeal(pepper) });
}
