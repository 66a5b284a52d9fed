import { Type } from 'typebox';
import { SCOPES } from '../../../domain/access/scopes.ts';
import { NETWORKS_MAX } from '../../../domain/accounts/networks.ts';
import { CHECKS } from '../../../domain/authentication/check.ts';
import { TOKEN_ALGORITHMS } from '../../../domain/authentication/jwks.ts';
import type { SchemeRecord } from '../../../domain/authentication/scheme-record.ts';
import { SCHEME_LIMITS } from '../../../domain/authentication/schemes.ts';
import { SIGNATURE_ALGORITHMS } from '../../../domain/authentication/signature.ts';
import { bodyOf } from '../../http/answer-body.ts';
import {
  idOf,
  lineOf,
  MaybeTime,
  orNull,
  ScopeName,
  STRICT,
  strict,
  Time,
  timeOf,
} from '../server/schemas.ts';

const { nameCharsMax, pemCharsMax, issuerCharsMax, claimCharsMax, mapEntriesMax } = SCHEME_LIMITS;
const URL_CHARS_MAX = 2_048;

const Name = lineOf(nameCharsMax);
const Scopes = Type.Array(ScopeName, {
  minItems: 1,
  maxItems: SCOPES.length,
  uniqueItems: true,
  description: 'The most that the scheme may be used for, as of keys',
});
const Networks = Type.Array(Type.String({ minLength: 2, maxLength: 64 }), {
  maxItems: NETWORKS_MAX,
  description: 'IPv4 or IPv6 networks, e.g. 203.0.113.0/24; empty = any address',
});

const MappedScopes = strict({
  value: lineOf(claimCharsMax),
  scopes: Type.Array(ScopeName, { maxItems: SCOPES.length, uniqueItems: true }),
});
const ScopeMap = Type.Array(MappedScopes, {
  maxItems: mapEntriesMax,
  description: 'Scopes by value of the claim; other values count if they are names of scopes',
});

const ofAny = {
  name: Name,
  scopes: Type.Optional(Scopes),
  allow_cidrs: Type.Optional(Networks),
  expires_at: Type.Optional(timeOf('When the scheme ends')),
  key_id: Type.Optional(idOf('key')),
};

export const NewSignatureScheme = Type.Object(
  {
    ...ofAny,
    algorithm: Type.Enum([...SIGNATURE_ALGORITHMS]),
    public_key: Type.Optional(
      Type.String({
        maxLength: pemCharsMax,
        description: 'SubjectPublicKeyInfo in PEM; left out for hmac-sha256, whose secret we make',
      }),
    ),
  },
  STRICT,
);

export const NewTokenScheme = Type.Object(
  {
    ...ofAny,
    issuer: lineOf(issuerCharsMax),
    jwks_url: Type.String({ minLength: 1, maxLength: URL_CHARS_MAX }),
    algorithms: Type.Array(Type.Enum([...TOKEN_ALGORITHMS]), {
      minItems: 1,
      maxItems: TOKEN_ALGORITHMS.length,
      uniqueItems: true,
    }),
    scope_claim: Type.Optional(lineOf(claimCharsMax)),
    scope_map: Type.Optional(ScopeMap),
  },
  STRICT,
);

export const SchemeChange = Type.Object(
  {
    name: Type.Optional(Name),
    scopes: Type.Optional(Scopes),
    allow_cidrs: Type.Optional(Networks),
    expires_at: Type.Optional(timeOf('When the scheme ends')),
    state: Type.Optional(
      Type.Enum(['on', 'off'], { description: '`on` needs a trial that succeeded' }),
    ),
  },
  { ...STRICT, minProperties: 1 },
);

const Trial = Type.Object({
  at: Time,
  ok: Type.Boolean({ examples: [false] }),
  check: orNull(Type.Enum([...CHECKS]), 'The part that failed; null = none'),
  detail: orNull(Type.String({ description: 'What to correct' })),
});

export const Scheme = Type.Object({
  id: Type.String({
    description: '`keyid` of signatures, `aud` of tokens; not secret',
    examples: ['aut_k3yq7v2bqm9c'],
  }),
  name: Type.String({ examples: ['desk 4'] }),
  kind: Type.Enum(['signature', 'token']),
  state: Type.Enum(['untried', 'off', 'on', 'expired']),
  key_id: orNull(Type.String(), 'Key that the scheme stands for; null = the account'),
  algorithms: Type.Array(Type.String({ examples: ['ed25519'] })),
  public_key: orNull(Type.String(), 'PEM'),
  issuer: orNull(Type.String()),
  jwks_url: orNull(Type.String()),
  scope_claim: orNull(Type.String()),
  scope_map: Type.Array(
    Type.Object({ value: Type.String({ examples: ['trading'] }), scopes: Type.Array(ScopeName) }),
  ),
  scopes: Type.Array(ScopeName),
  allow_cidrs: Type.Array(Type.String({ examples: ['203.0.113.0/24'] })),
  created_at: Time,
  expires_at: MaybeTime,
  trial_until: MaybeTime,
  last_trial: orNull(Trial),
  tried_at: MaybeTime,
  last_used_at: MaybeTime,
  last_used_address: orNull(Type.String()),
});

export const NewScheme = Type.Object({
  scheme: Scheme,
  secret: orNull(
    Type.String({ examples: ['<base64 of 32 bytes>'] }),
    'Secret of hmac-sha256 in base64, shown only this once',
  ),
});

export const Authentication = Type.Object({
  keys: Type.Enum(['accepted', 'refused'], {
    description: 'Whether API keys are accepted beside the schemes',
  }),
  data: Type.Array(Scheme),
  limit: Type.Integer({ examples: [SCHEME_LIMITS.perAccountMax] }),
});

export function schemeBody(record: SchemeRecord) {
  const scopeMap = Object.entries(record.scopeMap).map(([value, scopes]) => ({ value, scopes }));
  return bodyOf(Scheme, { ...record, scopeMap });
}
