import { type CryptoKey, importJWK, type JWK } from 'jose';
import { parseStrictJson } from '../../lib/json/strict-json.ts';
import { AttemptError } from '../webhooks/send/attempt-error.ts';
import type { DocumentFetcher } from '../webhooks/send/document-fetcher.ts';

export const JWKS_DOCUMENT_LIMITS = {
  bytesMax: 65_536,
  keysMax: 50,
  /** With DNS and connecting. */
  timeoutMs: 5_000,
} as const;

/** Public keys of an issuer by `kid`. */
export type Jwks = ReadonlyMap<string, IssuerKey>;

interface IssuerKey {
  readonly jwk: JWK;
  /** By algorithm: a key is imported once for each. */
  readonly imported: Map<string, CryptoKey | undefined>;
}

/** Reads the keys at an address. @throws AttemptError */
export type JwksFetch = (url: string) => Promise<Jwks>;

/** The type of key that an algorithm needs: a token cannot use a key for another kind of algorithm. */
const KEY_TYPES: Readonly<Record<string, { readonly kty: string; readonly crv?: string }>> = {
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
  ES256: { kty: 'EC', crv: 'P-256' },
  ES384: { kty: 'EC', crv: 'P-384' },
  PS256: { kty: 'RSA' },
  RS256: { kty: 'RSA' },
};

/** Algorithms of tokens that a scheme may accept; neither `none` nor HMAC, whose key would be public. */
export const TOKEN_ALGORITHMS = ['EdDSA', 'ES256', 'ES384', 'PS256', 'RS256'] as const;

const RSA_MODULUS_CHARS_MAX = 1_400;

/** Creates the reader of JWKS documents, behind the wall of webhooks. */
export function createJwksFetch({
  fetchDocument,
}: Pick<DocumentFetcher, 'fetchDocument'>): JwksFetch {
  return async (url) => {
    const { bytesMax, timeoutMs } = JWKS_DOCUMENT_LIMITS;
    const document = await fetchDocument(url, { bytesMax, timeoutMs });
    const keys = readJwks(document);
    if (typeof keys !== 'string') return keys;
    throw new AttemptError('protocol', keys);
  };
}

/** @returns the keys that may verify tokens, or why the document is not a JWK set */
export function readJwks(document: Buffer): Jwks | string {
  const parsed = parseStrictJson(document);
  const value = parsed.ok ? (parsed.value as { readonly keys?: unknown } | null) : undefined;
  if (!Array.isArray(value?.keys)) return 'The document at jwks_url is not a JWK set (RFC 7517).';
  if (value.keys.length > JWKS_DOCUMENT_LIMITS.keysMax) {
    return `The JWK set has ${value.keys.length} keys; at most ${JWKS_DOCUMENT_LIMITS.keysMax} are allowed.`;
  }
  const keys = new Map<string, IssuerKey>();
  for (const jwk of value.keys as (JWK | null)[]) {
    if (jwk === null || typeof jwk !== 'object' || !isPublic(jwk)) continue;
    const { kid } = jwk;
    // Of two keys with one name, it is not known which is meant.
    if (keys.has(kid)) return 'The JWK set has two keys with the same kid.';
    keys.set(kid, { jwk, imported: new Map() });
  }
  if (keys.size > 0) return keys;
  return 'The JWK set has no public key with kid that may verify signatures.';
}

function isPublic(jwk: JWK): jwk is JWK & { kid: string } {
  const { kid, kty, use, n } = jwk;
  const isKnown = kty === 'OKP' || kty === 'EC' || kty === 'RSA';
  const isSmall = n === undefined || (typeof n === 'string' && n.length <= RSA_MODULUS_CHARS_MAX);
  const isForSigning = use === undefined || use === 'sig';
  return (
    isKnown && isSmall && isForSigning && !('d' in jwk) && typeof kid === 'string' && kid !== ''
  );
}

/** Imports the key with this name for an algorithm; undefined = no such key, or it does not fit. */
export async function keyOf(
  keys: Jwks,
  { kid, alg }: { readonly kid: string; readonly alg: string },
): Promise<CryptoKey | undefined> {
  const key = keys.get(kid);
  const needed = KEY_TYPES[alg];
  if (key === undefined || needed === undefined) return undefined;
  const { jwk, imported } = key;
  if (imported.has(alg)) return imported.get(alg);
  const fits =
    jwk.kty === needed.kty &&
    (needed.crv === undefined || jwk.crv === needed.crv) &&
    (jwk.alg === undefined || jwk.alg === alg || (jwk.alg === 'Ed25519' && alg === 'EdDSA'));
  const { key_ops: _, alg: __, ...bare } = jwk;
  const made = fits ? await importJWK(bare, alg).catch(() => undefined) : undefined;
  const usable = made instanceof Uint8Array ? undefined : made;
  imported.set(alg, usable);
  return usable;
}
