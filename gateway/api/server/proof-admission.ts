import type { FastifyRequest } from 'fastify';
import type { KeyAccess } from '../../../domain/access/account-access.ts';
import type { Authenticator, ProofVerdict } from '../../../domain/authentication/authenticator.ts';
import {
  type ClientProof,
  headerPairs,
  publicTarget,
  readClientProof,
} from '../../http/client-proof.ts';
import type { Refusal } from '../../http/problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Digests that the body must have, by algorithm, because its sender has signed them. */
    bodyDigests: ReadonlyMap<string, Buffer> | undefined;
  }
}

/** The signature or token of a request, if it has one. @param publicUrl of the API */
export function proofOf(request: FastifyRequest, publicUrl: string): ClientProof | undefined {
  const { method = '', url = '', rawHeaders, headers } = request.raw;
  // Almost every request has a key, and ends here.
  const { authorization, signature, 'signature-input': input } = headers;
  if (authorization === undefined && signature === undefined && input === undefined) {
    return undefined;
  }
  const hasBody =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return readClientProof({
    method,
    url: publicTarget(publicUrl, url),
    headers: headerPairs(rawHeaders),
    hasBody,
  });
}

/** @returns the access that a proof gives, or why the request is refused */
export async function admitProof(
  authenticator: Pick<Authenticator, 'identify'>,
  proof: ClientProof,
  request: FastifyRequest,
): Promise<KeyAccess | { readonly refusal: Refusal }> {
  if (proof.kind === 'mixed') return { refusal: ['credentials_mixed', {}] };
  const isIgnored =
    proof.kind === 'signature' &&
    proof.message.hasBody &&
    request.routeOptions.schema?.body === undefined;
  if (isIgnored) {
    const detail = 'This endpoint takes no body. Send none, since its digest would not be checked.';
    return { refusal: ['signature_malformed', { detail, check: 'content_digest' }] };
  }
  const verdict = await authenticator.identify(proof, request.ip);
  if (verdict.kind !== 'key') return { refusal: proofRefusal(verdict, proof.kind) };
  request.bodyDigests = verdict.digests;
  return verdict.key;
}

/** The problem of a proof that does not hold. */
export function proofRefusal(
  verdict: Exclude<ProofVerdict, { kind: 'key' }>,
  of: 'signature' | 'token',
): Refusal {
  switch (verdict.kind) {
    case 'refused': {
      const { check, detail, isShown } = verdict.fault;
      if (of === 'signature') {
        return isShown ? ['signature_malformed', { detail, check }] : ['signature_invalid', {}];
      }
      return isShown ? ['access_token_malformed', { detail, check }] : ['access_token_invalid', {}];
    }
    case 'replayed':
      return ['signature_replayed', {}];
    case 'nonces_full': {
      const detail = 'The scheme has signed too many requests lately.';
      return ['rate_limited', { 'violated-policies': ['signatures'], detail, retry_after_s: 60 }];
    }
    case 'address_refused':
      return ['address_refused', {}];
    case 'issuer_unavailable':
      return ['issuer_unavailable', { retry_after_s: 30 }];
    case 'unavailable':
      return ['accounts_unavailable', { retry_after_s: 1 }];
  }
}
