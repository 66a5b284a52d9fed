import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto';
import { httpbis } from 'http-message-signatures';
import type { SchemeProof } from '../access/scheme-rows.ts';
import type { Seal } from '../access/sealing.ts';
import { type Checked, refused } from './check.ts';
import type { SignatureInput, SignedMessage } from './signature-input.ts';

/** Algorithms of RFC 9421, section 3.3, that a scheme may have. */
export const SIGNATURE_ALGORITHMS = ['ed25519', 'ecdsa-p256-sha256', 'hmac-sha256'] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

export type SignatureProof = Extract<SchemeProof, { kind: 'signature' }>;
export type Verifier = (base: Buffer, signature: Buffer) => boolean;

/** Makes the verifier of a scheme. @throws SealError when the secret cannot be opened */
export function verifierOf(id: string, proof: SignatureProof, seal: Seal): Verifier {
  if (proof.sealed !== undefined) {
    const secret = seal.open(proof.sealed, id);
    return (base, signature) => {
      const own = createHmac('sha256', secret).update(base).digest();
      return own.length === signature.length && timingSafeEqual(own, signature);
    };
  }
  const key = createPublicKey({ key: proof.publicKey!, format: 'der', type: 'spki' });
  return proof.algorithm === 'ed25519' ? ed25519(key) : ecdsaP256(key);
}

const ed25519 =
  (key: KeyObject): Verifier =>
  (base, signature) =>
    verify(null, base, key, signature);

/** RFC 9421, section 3.3.4: the signature is r and s, 32 bytes each. */
const ecdsaP256 =
  (key: KeyObject): Verifier =>
  (base, signature) =>
    signature.length === 64 &&
    verify('sha256', base, { key, dsaEncoding: 'ieee-p1363' }, signature);

/** Reads a public key in PEM. @returns its DER, or undefined if the algorithm does not fit */
export function readPublicKey(pem: string, algorithm: SignatureAlgorithm): Buffer | undefined {
  // createPublicKey also takes private keys and certificates, which must not be sent to us.
  if (
    !/^-----BEGIN PUBLIC KEY-----\s[\sA-Za-z0-9+/=]+-----END PUBLIC KEY-----\s*$/.test(pem.trim())
  ) {
    return undefined;
  }
  try {
    const key = createPublicKey(pem);
    const isEd25519 = key.asymmetricKeyType === 'ed25519';
    const isP256 = key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
    const fits = algorithm === 'ed25519' ? isEd25519 : algorithm === 'ecdsa-p256-sha256' && isP256;
    return fits ? key.export({ format: 'der', type: 'spki' }) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Verifies a signature whose form `readSignatureInput` has accepted. The library rebuilds the
 * signature base (RFC 9421, section 2.5) from the message.
 */
export async function verifySignature(
  message: SignedMessage,
  { algorithm }: SignatureInput,
  proof: { readonly algorithm: string; readonly verify: Verifier },
): Promise<Checked<undefined>> {
  if (algorithm !== undefined && algorithm !== proof.algorithm) {
    return refused('algorithm', `The scheme has the algorithm ${proof.algorithm}; alg differs.`);
  }
  let base = '';
  const key = {
    verify: async (data: Buffer, signature: Buffer) => {
      base = data.toString('utf8');
      return proof.verify(data, signature);
    },
  };
  const { method, url } = message;
  const config = { all: true, keyLookup: async () => key };
  const isValid = await httpbis
    .verifyMessage(config, { method, url, headers: headersOf(message) })
    .catch(() => false);
  if (isValid === true) return { ok: true, value: undefined };
  const detail = `The signature does not fit the signature base of the request as it arrived here: ${base}`;
  return refused('signature', detail);
}

function headersOf({ headers }: SignedMessage): Record<string, string[]> {
  const byName: Record<string, string[]> = Object.create(null);
  for (const [name, value] of headers) {
    const values = byName[name] ?? [];
    byName[name] = values;
    values.push(value);
  }
  return byName;
}
