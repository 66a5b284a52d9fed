import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { isSchemeId, type SchemeProof } from '../access/scheme-rows.ts';
import { SCOPES, type Scope } from '../access/scopes.ts';
import { type Checked, malformed, refused } from './check.ts';
import { TOKEN_ALGORITHMS } from './jwks.ts';
import type { JwksCache } from './jwks-cache.ts';

export const TOKEN_LIMITS = {
  charsMax: 8_192,
  kidCharsMax: 256,
  /** How far `exp` may be ahead. */
  lifeMaxS: 86_400,
  /** By which the clock of the issuer may differ. */
  toleranceS: 5,
  /** Values of the scope claim that are read. */
  scopesMax: 100,
} as const;

export type TokenProof = Extract<SchemeProof, { kind: 'token' }>;

/** A token whose form is right; nothing is verified yet. */
export interface TokenInput {
  readonly schemeId: string;
  readonly token: string;
  readonly alg: string;
  readonly kid: string;
}

/** What a verified token grants. */
export interface TokenGrant {
  readonly endsAtMs: number;
  /** undefined = all scopes of the scheme. */
  readonly scopes: readonly Scope[] | undefined;
}

/** Reads a JWT (RFC 7519) in compact form, without verifying it. */
export function readTokenInput(token: string): Checked<TokenInput> {
  if (token.length > TOKEN_LIMITS.charsMax) {
    const detail = `The token has more than ${TOKEN_LIMITS.charsMax} characters. Put less into it.`;
    return malformed('headers', detail);
  }
  const decoded = decode(token);
  if (decoded === undefined) {
    return malformed('headers', 'Authorization must be Bearer and a signed JWT in compact form.');
  }
  const { alg, kid } = decoded.header;
  if (!TOKEN_ALGORITHMS.some((one) => one === alg)) {
    const detail = `The algorithm of the token must be one of ${TOKEN_ALGORITHMS.join(', ')}.`;
    return malformed('algorithm', detail);
  }
  if (typeof kid !== 'string' || kid === '' || kid.length > TOKEN_LIMITS.kidCharsMax) {
    return malformed('key_id', 'The header of the token must name its key as kid.');
  }
  // Nothing is verified yet, so `aud` may be any JSON value.
  const audiences = [decoded.claims.aud as unknown]
    .flat()
    .filter((aud): aud is string => typeof aud === 'string' && isSchemeId(aud));
  const [schemeId] = audiences;
  if (audiences.length !== 1 || schemeId === undefined) {
    return malformed(
      'claims',
      'The audience (aud) of the token must contain the id of the scheme once.',
    );
  }
  return { ok: true, value: { schemeId, token, alg: alg!, kid } };
}

function decode(token: string) {
  try {
    return { header: decodeProtectedHeader(token), claims: decodeJwt(token) };
  } catch {
    return undefined;
  }
}

/** Verifies a token by the keys of its issuer. @returns `unavailable` if they cannot be read now */
export async function verifyToken(
  { schemeId, token, alg, kid }: TokenInput,
  proof: TokenProof,
  jwks: JwksCache,
): Promise<Checked<TokenGrant> | 'unavailable'> {
  if (!proof.algorithms.includes(alg)) {
    return refused('algorithm', `The scheme accepts ${proof.algorithms.join(', ')}, not ${alg}.`);
  }
  const key = await jwks.key(schemeId, proof.jwksUrl, { kid, alg });
  if (key === 'unavailable') return 'unavailable';
  if (key === 'unknown_key' || key === undefined) {
    const detail = `The issuer has no key with the kid of the token for ${alg}. A new key is found within a minute.`;
    return refused('key_id', detail);
  }
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [...proof.algorithms],
      issuer: proof.issuer,
      audience: schemeId,
      requiredClaims: ['exp'],
      clockTolerance: TOKEN_LIMITS.toleranceS,
    });
    return grantOf(payload, proof);
  } catch (error) {
    return faultOf(error);
  }
}

function grantOf(payload: JWTPayload, proof: TokenProof): Checked<TokenGrant> {
  const endsAtMs = payload.exp! * 1_000;
  if (endsAtMs - Date.now() > TOKEN_LIMITS.lifeMaxS * 1_000) {
    return malformed(
      'expiry',
      `A token may be valid for at most ${TOKEN_LIMITS.lifeMaxS} s from now.`,
    );
  }
  const { scopeClaim, scopeMap } = proof;
  if (scopeClaim === undefined) return { ok: true, value: { endsAtMs, scopes: undefined } };
  const claim = payload[scopeClaim];
  const values = typeof claim === 'string' ? claim.split(' ') : claim;
  if (!Array.isArray(values) || values.length > TOKEN_LIMITS.scopesMax) {
    const detail = `The claim "${scopeClaim}" must list at most ${TOKEN_LIMITS.scopesMax} values.`;
    return malformed('scopes', detail);
  }
  const granted = values.flatMap((value: unknown) =>
    typeof value === 'object' ? [] : scopesOf(String(value), scopeMap),
  );
  return { ok: true, value: { endsAtMs, scopes: SCOPES.filter((one) => granted.includes(one)) } };
}

function scopesOf(value: string, map: TokenProof['scopeMap']): readonly Scope[] {
  if (Object.hasOwn(map, value)) return map[value]!;
  return SCOPES.filter((scope) => scope === value);
}

/** jose checks claims after the signature. */
function faultOf(error: unknown): Checked<never> {
  if (error instanceof errors.JWTExpired) return malformed('expiry', 'The token has expired.');
  if (error instanceof errors.JWTClaimValidationFailed) {
    const check = error.claim === 'iss' ? 'issuer' : 'claims';
    return malformed(check, `The claim "${error.claim}" is missing or is not accepted.`);
  }
  return refused('signature', 'The signature of the token does not fit the key of its issuer.');
}
