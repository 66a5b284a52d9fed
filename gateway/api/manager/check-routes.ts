import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import type { Authenticator, ProofVerdict } from '../../../domain/authentication/authenticator.ts';
import { CHECKS } from '../../../domain/authentication/check.ts';
import type { TrialReport } from '../../../domain/authentication/scheme-record.ts';
import { SCHEME_LIMITS, type Schemes } from '../../../domain/authentication/schemes.ts';
import { hasDigests } from '../../../domain/authentication/signature-input.ts';
import { answerOf, timeText } from '../../http/answer-body.ts';
import type { ClientProof } from '../../http/client-proof.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { proofOf, proofRefusal } from '../server/proof-admission.ts';
import { orNull, ScopeName } from '../server/schemas.ts';

interface CheckDeps {
  readonly authenticator: Authenticator;
  readonly schemes: Schemes;
  /** Public address of the API, which signatures cover. */
  readonly publicUrl: string;
}

const Report = Type.Object({
  ok: Type.Boolean({ examples: [true] }),
  scheme: orNull(Type.String({ examples: ['aut_k3yq7v2bqm9c'] })),
  check: orNull(Type.Enum([...CHECKS]), 'The part that failed; null = none'),
  detail: orNull(Type.String(), 'What to correct'),
  scopes: Type.Array(ScopeName, { description: 'What the request may be used for' }),
});

const SUMMARY = 'Check a signed request, or a token, of a scheme that is on or being tried';
const DESCRIPTION =
  'No key: the credential is what is checked. While a trial of the scheme is open, the answer says ' +
  'which part failed; otherwise it is the same 401 as elsewhere.';
const PROBLEMS = [
  ...(['credentials_mixed', 'key_missing', 'signature_malformed', 'signature_invalid'] as const),
  ...(['signature_replayed', 'access_token_malformed', 'access_token_invalid'] as const),
  ...(['address_refused', 'issuer_unavailable'] as const),
];

/** The trial of authentication schemes by a real request of the client. */
export function checkRoutes(deps: CheckDeps): RouteOptions[] {
  const of = {
    url: '/api/authentication/check',
    tag: 'account',
    summary: SUMMARY,
    description: DESCRIPTION,
    access: OPEN_LIMITED,
    answers: { 200: answerOf('The result.', Report) },
    problems: PROBLEMS,
  } as const;
  return [
    accountRoute({ ...of, method: 'GET', handle: (request, reply) => check(deps, request, reply) }),
    accountRoute({
      ...of,
      method: 'POST',
      body: Type.Object({}, { description: 'Any object, whose digest is checked' }),
      bodyExample: {},
      handle: (request, reply) => check(deps, request, reply),
    }),
  ];
}

async function check(deps: CheckDeps, request: FastifyRequest, reply: FastifyReply) {
  const proof = proofOf(request, deps.publicUrl);
  if (proof === undefined) return refuse(reply, 'key_missing');
  if (proof.kind === 'mixed') return refuse(reply, 'credentials_mixed');
  const nowMs = Date.now();
  const tried = await deps.authenticator.tryProof(proof, request.ip, nowMs);
  const verdict = withBody(tried.verdict, request.rawBody);
  const wanted = tried.schemeId ?? deps.authenticator.schemeIdOf(proof, nowMs);
  const isOfTrial = wanted !== undefined && (await deps.authenticator.isTried(wanted, nowMs));
  if (!isOfTrial || wanted === undefined) {
    if (verdict.kind !== 'key') return refuse(reply, ...proofRefusal(verdict, proof.kind));
  } else {
    await deps.schemes.recordTrial(wanted, reportOf(verdict, proof, nowMs));
  }
  const { ok, check: part, detail } = reportOf(verdict, proof, nowMs);
  const scopes = verdict.kind === 'key' ? verdict.key.scopes : [];
  return { ok, scheme: wanted ?? null, check: part, detail, scopes };
}

function withBody(verdict: ProofVerdict, body: Buffer | undefined): ProofVerdict {
  if (verdict.kind !== 'key' || verdict.digests === undefined) return verdict;
  if (hasDigests(body ?? Buffer.alloc(0), verdict.digests)) return verdict;
  const detail = 'The body as it arrived here does not have the digest in Content-Digest.';
  return { kind: 'refused', fault: { check: 'content_digest', detail, isShown: true } };
}

function reportOf(verdict: ProofVerdict, proof: ClientProof, nowMs: number): TrialReport {
  const at = timeText(new Date(nowMs));
  if (verdict.kind === 'key') return { at, ok: true, check: null, detail: null };
  const [check, detail] = failureOf(verdict, proof.kind);
  return {
    at,
    ok: false,
    check,
    detail: detail.slice(0, SCHEME_LIMITS.detailCharsMax).toWellFormed(),
  };
}

function failureOf(
  verdict: Exclude<ProofVerdict, { kind: 'key' }>,
  of: ClientProof['kind'],
): readonly [check: string, detail: string] {
  switch (verdict.kind) {
    case 'refused':
      return [verdict.fault.check, verdict.fault.detail];
    case 'replayed':
      return [
        'nonce',
        'Another request has used the same nonce. Sign each request again, with a new nonce.',
      ];
    case 'nonces_full':
      return ['nonce', 'The scheme has signed too many requests lately. Wait a minute.'];
    case 'address_refused':
      return ['network', 'The address of the request is outside the networks of the scheme.'];
    case 'issuer_unavailable':
      return ['issuer_keys', 'jwks_url gave no usable key set, or was asked less than 30 s ago.'];
    case 'unavailable':
      return [of === 'signature' ? 'nonce' : 'scheme', 'Accounts are unavailable. Try again.'];
  }
}
