import type { Scope } from '../access/scopes.ts';
import { canonicalNetworks } from '../accounts/networks.ts';
import { readPublicKey, type SignatureAlgorithm } from './signature.ts';

/** What a new scheme verifies. */
export type NewProof =
  | {
      readonly kind: 'signature';
      readonly algorithm: SignatureAlgorithm;
      /** PEM; absent for hmac-sha256. */
      readonly publicKey?: string | undefined;
    }
  | {
      readonly kind: 'token';
      readonly algorithms: readonly string[];
      readonly issuer: string;
      readonly jwksUrl: string;
      readonly scopeClaim?: string | undefined;
      readonly scopeMap?: Readonly<Record<string, readonly Scope[]>> | undefined;
    };

export interface SchemeSettings {
  readonly name?: string | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  readonly allowCidrs?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
}

export interface SchemeInvalid {
  readonly kind: 'invalid';
  readonly field: string;
  /** One sentence for the caller, which never repeats the input. */
  readonly reason: string;
}

/** The first setting that is not accepted; undefined = none. */
export function settingsFault(
  wanted: SchemeSettings & { readonly proof?: NewProof },
): SchemeInvalid | undefined {
  const { expiresAt, allowCidrs = [], proof } = wanted;
  // The negation also refuses an invalid date.
  if (expiresAt !== undefined && !(expiresAt.getTime() > Date.now())) {
    return invalid('expires_at', 'must be a time in the future.');
  }
  const networks = canonicalNetworks(allowCidrs);
  if (!networks.ok) return invalid('allow_cidrs', networks.reason);
  if (proof?.kind !== 'signature') return undefined;
  const { algorithm, publicKey } = proof;
  if (algorithm === 'hmac-sha256') {
    const reason = 'must be left out for hmac-sha256: the answer has the secret.';
    return publicKey === undefined ? undefined : invalid('public_key', reason);
  }
  if (publicKey !== undefined && readPublicKey(publicKey, algorithm) !== undefined)
    return undefined;
  const kind = algorithm === 'ed25519' ? 'an Ed25519' : 'a P-256';
  return invalid(
    'public_key',
    `must be ${kind} public key in PEM, which begins "BEGIN PUBLIC KEY".`,
  );
}

export function isHmac(proof: NewProof): boolean {
  return proof.kind === 'signature' && proof.algorithm === 'hmac-sha256';
}

/** Columns of `authentication_schemes` for a proof that was checked. */
export function proofColumns(proof: NewProof) {
  if (proof.kind === 'signature') {
    const { kind, algorithm, publicKey } = proof;
    const key = publicKey === undefined ? null : readPublicKey(publicKey, algorithm)!;
    return { kind, algorithms: [algorithm], public_key: key };
  }
  const { kind, algorithms, issuer, jwksUrl, scopeClaim = null, scopeMap = {} } = proof;
  return {
    kind,
    algorithms: [...algorithms],
    issuer,
    jwks_url: jwksUrl,
    scope_claim: scopeClaim,
    scope_map: JSON.stringify(scopeMap),
  };
}

export function invalid(field: string, reason: string): SchemeInvalid {
  return { kind: 'invalid', field, reason };
}
