import { generateKeyPairSync } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Identified } from '../access/account-access.ts';
import type { Keyring } from '../access/keyring.ts';
import { acceptScheme } from '../access/scheme-lookups.ts';
import { type FoundScheme, isAddressAllowed, schemeFault } from '../access/scheme-rows.ts';
import { hasScope } from '../access/scopes.ts';
import type { Seal } from '../access/sealing.ts';
import { type Checked, type ProofFault, refused } from './check.ts';
import type { JwksCache } from './jwks-cache.ts';
import { type SignatureProof, type Verifier, verifierOf, verifySignature } from './signature.ts';
import { readSignatureInput, type SignatureInput, type SignedMessage } from './signature-input.ts';
import { readTokenInput, type TokenGrant, type TokenInput, verifyToken } from './token.ts';

/** What a client sends in place of a key. */
export type Proof =
  | { readonly kind: 'signature'; readonly message: SignedMessage }
  | { readonly kind: 'token'; readonly token: string };

/** The result of checking a proof. */
export type ProofVerdict =
  | (Extract<Identified, { kind: 'key' }> & {
      /** Digests that the body must have; undefined = the signature covers none. */
      readonly digests: ReadonlyMap<string, Buffer> | undefined;
    })
  | { readonly kind: 'refused'; readonly fault: ProofFault }
  | { readonly kind: 'replayed' }
  /** The scheme has used too many nonces. */
  | { readonly kind: 'nonces_full' }
  | { readonly kind: 'address_refused' }
  | { readonly kind: 'issuer_unavailable' }
  | { readonly kind: 'unavailable' };

/** A proof that holds; whether the scheme is on has not been checked. */
interface Verified {
  readonly found: FoundScheme;
  readonly nonce: string | undefined;
  readonly grant: TokenGrant | undefined;
  readonly digests: ReadonlyMap<string, Buffer> | undefined;
}

type Verification =
  | { readonly kind: 'verified'; readonly verified: Verified }
  | Exclude<ProofVerdict, { kind: 'key' }>;

/** Verifiers in memory: parsing a key costs more than a verification. */
const VERIFIERS_MAX = 10_000;

const UNKNOWN = 'There is no scheme of this id that is on or being tried.';

export type Authenticator = ReturnType<typeof createAuthenticator>;

/** Verifies signatures and tokens of clients. Secrets and keys are in clear only in memory. */
export function createAuthenticator(deps: {
  readonly keyring: Pick<Keyring, 'scheme' | 'useNonce'>;
  readonly jwks: JwksCache;
  readonly seal: Seal;
}) {
  const { keyring } = deps;
  const verify = createVerify(deps);
  const useNonce = async ({ found, nonce }: Verified): Promise<ProofVerdict | undefined> => {
    if (nonce === undefined) return undefined;
    const use = await keyring.useNonce(found.access.id, nonce);
    if (use === 'fresh') return undefined;
    if (use === 'used') return { kind: 'replayed' };
    return { kind: use === 'full' ? 'nonces_full' : 'unavailable' };
  };
  return {
    /** Identifies the sender of a proof as the keyring identifies that of a key. */
    async identify(proof: Proof, address: string): Promise<ProofVerdict> {
      const verification = await verify(proof);
      if (verification.kind !== 'verified') return verification;
      const { found, grant, digests } = verification.verified;
      const accepted = acceptScheme(found, address);
      if (accepted.kind === 'address_refused') return accepted;
      if (accepted.kind !== 'key')
        return { kind: 'refused', fault: refused('scheme', UNKNOWN).fault };
      const nonceFault = await useNonce(verification.verified);
      if (nonceFault !== undefined) return nonceFault;
      return { kind: 'key', key: narrowed(found, grant), digests };
    },
    /**
     * Checks a proof of a scheme that is on or being tried, and says which part fails. The nonce
     * counts as used.
     */
    async tryProof(proof: Proof, address: string, nowMs: number) {
      const verification = await verify(proof);
      if (verification.kind !== 'verified') return { verdict: verification } as const;
      const { found, grant, digests } = verification.verified;
      const { id: schemeId } = found.access;
      const fault = schemeFault(found, nowMs);
      if (fault !== undefined && !(fault === 'off' && nowMs < found.trialUntilMs)) {
        return { verdict: { kind: 'refused', fault: refused('scheme', UNKNOWN).fault } } as const;
      }
      const nonceFault = await useNonce(verification.verified);
      if (nonceFault !== undefined) return { schemeId, verdict: nonceFault };
      if (!isAddressAllowed(found, address)) {
        return { schemeId, verdict: { kind: 'address_refused' } as const };
      }
      return { schemeId, verdict: { kind: 'key', key: narrowed(found, grant), digests } as const };
    },
    /** Whether a trial of a scheme is open, so that answers may name the fault. */
    async isTried(id: string, nowMs: number): Promise<boolean> {
      const found = await keyring.scheme(id);
      return typeof found === 'object' && !found.isRevoked && nowMs < found.trialUntilMs;
    },
    /** The scheme that a proof names, whether or not the proof holds. */
    schemeIdOf(proof: Proof, nowMs: number): string | undefined {
      const input =
        proof.kind === 'token'
          ? readTokenInput(proof.token)
          : readSignatureInput(proof.message, nowMs);
      return input.ok ? input.value.schemeId : undefined;
    },
  };
}

function createVerify({
  keyring,
  jwks,
  seal,
}: {
  readonly keyring: Pick<Keyring, 'scheme'>;
  readonly jwks: JwksCache;
  readonly seal: Seal;
}) {
  const verifiers = new LRUCache<SignatureProof, Verifier>({ max: VERIFIERS_MAX });
  const verifierFor = (id: string, proof: SignatureProof) => {
    const known = verifiers.get(proof) ?? verifierOf(id, proof, seal);
    verifiers.set(proof, known);
    return known;
  };
  const decoy = createDecoy();

  const ofSignature = async (
    message: SignedMessage,
    input: SignatureInput,
    found: FoundScheme | undefined,
  ): Promise<Checked<undefined>> => {
    if (found?.proof.kind !== 'signature') {
      // An unknown scheme costs the time of a wrong signature.
      await verifySignature(message, { ...input, algorithm: undefined }, decoy);
      return refused('scheme', UNKNOWN);
    }
    const { proof } = found;
    const verify = verifierFor(found.access.id, proof);
    return verifySignature(message, input, { algorithm: proof.algorithm, verify });
  };
  const ofToken = async (input: TokenInput, found: FoundScheme | undefined) =>
    found?.proof.kind === 'token'
      ? verifyToken(input, found.proof, jwks)
      : refused('scheme', UNKNOWN);

  return async (proof: Proof): Promise<Verification> => {
    if (proof.kind === 'signature') {
      const input = readSignatureInput(proof.message, Date.now());
      if (!input.ok) return { kind: 'refused', fault: input.fault };
      const { schemeId, nonce, digests } = input.value;
      const found = await keyring.scheme(schemeId);
      if (found === 'unavailable') return { kind: 'unavailable' };
      const checked = await ofSignature(proof.message, input.value, found);
      if (!checked.ok || found === undefined) return refusalOf(checked);
      return { kind: 'verified', verified: { found, nonce, digests, grant: undefined } };
    }
    const input = readTokenInput(proof.token);
    if (!input.ok) return { kind: 'refused', fault: input.fault };
    const found = await keyring.scheme(input.value.schemeId);
    if (found === 'unavailable') return { kind: 'unavailable' };
    // Keys are not fetched for a scheme that is neither on nor being tried.
    const isLive = found !== undefined && (found.isOn || Date.now() < found.trialUntilMs);
    const checked = await ofToken(input.value, isLive && !found.isRevoked ? found : undefined);
    if (checked === 'unavailable') return { kind: 'issuer_unavailable' };
    if (!checked.ok || found === undefined) return refusalOf(checked);
    const grant = checked.value;
    return { kind: 'verified', verified: { found, nonce: undefined, grant, digests: undefined } };
  };
}

function refusalOf(checked: Checked<unknown>): Verification {
  const fault = checked.ok ? refused('scheme', UNKNOWN).fault : checked.fault;
  return { kind: 'refused', fault };
}

/** The access of a scheme, with the scopes and the end of the token. */
function narrowed({ access }: FoundScheme, grant: TokenGrant | undefined) {
  if (grant === undefined) return access;
  const { scopes, endsAtMs: tokenEndsAtMs } = grant;
  const allowed = (scopes ?? access.scopes).filter((scope) => hasScope(access.scopes, scope));
  return { ...access, scopes: allowed, tokenEndsAtMs };
}

function createDecoy() {
  const { publicKey } = generateKeyPairSync('ed25519');
  const der = publicKey.export({ format: 'der', type: 'spki' });
  const proof = { kind: 'signature', algorithm: 'ed25519', publicKey: der } as const;
  const open = () => {
    throw new Error('The decoy has no secret.');
  };
  const verify = verifierOf('decoy', { ...proof, sealed: undefined }, { seal: open, open });
  return { algorithm: 'ed25519', verify };
}
