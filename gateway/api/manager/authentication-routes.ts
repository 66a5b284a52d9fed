import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { type Static, Type } from 'typebox';
import { DEFAULT_SCOPES } from '../../../domain/access/scopes.ts';
import type { NewProof, SchemeInvalid } from '../../../domain/authentication/scheme-settings.ts';
import { SCHEME_LIMITS, type Schemes } from '../../../domain/authentication/schemes.ts';
import { checkUrl, type UrlPolicy } from '../../../domain/webhooks/send/url-policy.ts';
import { answerOf, fromBody } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import { idOf, STRICT } from '../server/schemas.ts';
import { keyRefusalRoutes } from './key-refusal-routes.ts';
import {
  NewScheme,
  NewSignatureScheme,
  NewTokenScheme,
  Scheme,
  SchemeChange,
  schemeBody,
} from './scheme-schemas.ts';

export interface AuthenticationDeps {
  readonly schemes: Schemes;
  /** Where keys of issuers may be read. */
  readonly policy: UrlPolicy;
}

const CHANGES = withFreshFactor(signedIn('schemes:change', 'custom_authentication'));
const MANAGER = { tag: 'manager' } as const;
const params = Type.Object({ id: idOf('aut') }, STRICT);

/** Authentication schemes of an Institutional account, by session, as keys are. */
export function authenticationRoutes(deps: AuthenticationDeps): RouteOptions[] {
  const { schemes } = deps;
  return [
    ...keyRefusalRoutes(schemes),
    createSignatureScheme(deps),
    createTokenScheme(deps),
    accountRoute({
      method: 'GET',
      url: '/api/manager/authentication/schemes/:id',
      ...MANAGER,
      access: signedIn('schemes:read'),
      summary: 'Read a scheme, with the result of its last trial',
      params,
      answers: { 200: answerOf('The scheme.', Scheme) },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const found = await schemes.get(callerOf(request).account.id, request.params.id);
        return found === undefined ? refuse(reply, 'object_not_found') : schemeBody(found);
      },
    }),
    changeScheme(schemes),
    openTrial(schemes),
    removeScheme(schemes),
  ];
}

const CREATED = { 201: answerOf('The new scheme, untried and off.', NewScheme) };
const CREATE_PROBLEMS = ['scheme_limit', 'too_many_attempts', 'email_unverified'] as const;
const IF_UNKNOWN =
  'If GET /api/manager/authentication lists a new scheme, remove it and create another.';

function createSignatureScheme({ schemes }: AuthenticationDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/manager/authentication/signature-schemes',
    ...MANAGER,
    access: CHANGES,
    summary: 'Register the key of signed requests (RFC 9421)',
    description:
      'What a scheme verifies never changes: to rotate, add a second scheme, try it, switch it on, and remove the first.',
    body: NewSignatureScheme,
    bodyExample: {
      name: 'desk 4',
      algorithm: 'ed25519',
      public_key: '-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n',
    },
    answers: CREATED,
    problems: CREATE_PROBLEMS,
    ifUnknown: IF_UNKNOWN,
    handle(request, reply) {
      const { algorithm, public_key: publicKey, ...settings } = request.body;
      return create(schemes, request, reply, settings, { kind: 'signature', algorithm, publicKey });
    },
  });
}

function createTokenScheme({ schemes, policy }: AuthenticationDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/manager/authentication/token-schemes',
    ...MANAGER,
    access: CHANGES,
    summary: 'Register the issuer of tokens (JWT) and the address of its public keys (JWKS)',
    description:
      'Tokens name the scheme as their audience (`aud`). `jwks_url` must be a public https address; ' +
      'redirects are not followed.',
    body: NewTokenScheme,
    bodyExample: {
      name: 'desk 4',
      issuer: 'https://id.example.com/',
      jwks_url: 'https://id.example.com/jwks.json',
      algorithms: ['ES256'],
      scope_claim: 'scope',
    },
    answers: CREATED,
    problems: CREATE_PROBLEMS,
    ifUnknown: IF_UNKNOWN,
    handle(request, reply) {
      const {
        issuer,
        jwks_url: jwksUrl,
        algorithms,
        scope_claim: scopeClaim,
        ...rest
      } = request.body;
      const { scope_map: mapped = [], ...settings } = rest;
      const checked = checkUrl(jwksUrl, policy);
      if (!checked.ok) {
        const { code, detail } = checked.fault;
        return refuseBody(reply, [bodyFault('/jwks_url', code, detail)]);
      }
      const scopeMap = Object.fromEntries(mapped.map(({ value, scopes }) => [value, scopes]));
      const proof = { kind: 'token', issuer, jwksUrl, algorithms, scopeClaim, scopeMap } as const;
      return create(schemes, request, reply, settings, proof);
    },
  });
}

type NewSettings = Omit<Static<typeof NewSignatureScheme>, 'algorithm' | 'public_key'>;

async function create(
  schemes: Schemes,
  request: FastifyRequest,
  reply: FastifyReply,
  settings: NewSettings,
  proof: NewProof,
) {
  if (!callerOf(request).session!.isVerified) return refuse(reply, 'email_unverified');
  const { scopes = DEFAULT_SCOPES, expiresAt, ...named } = fromBody(settings);
  const made = await schemes.create({
    ...requesterOf(request),
    ...named,
    scopes,
    expiresAt: dateOf(expiresAt),
    proof,
  });
  if (made.kind === 'invalid') return refuseField(reply, made);
  if (made.kind === 'limit') {
    return refuse(reply, 'scheme_limit', { limit: SCHEME_LIMITS.perAccountMax });
  }
  if (made.kind === 'too_many_made') {
    const detail = `${SCHEME_LIMITS.madePerHourMax} schemes were created within an hour.`;
    return refuse(reply, 'too_many_attempts', { detail, retry_after_s: 600 });
  }
  const { record, secret = null } = made;
  return reply.code(201).send({ scheme: schemeBody(record), secret });
}

function changeScheme(schemes: Schemes): RouteOptions {
  return accountRoute({
    method: 'PATCH',
    url: '/api/manager/authentication/schemes/:id',
    ...MANAGER,
    access: CHANGES,
    summary: 'Change a scheme, or switch it on or off; in effect everywhere within a second',
    description: 'Switched off, it is refused and its sockets are closed with 4502.',
    params,
    body: SchemeChange,
    bodyExample: { state: 'on' },
    answers: { 200: answerOf('The scheme.', Scheme, { state: 'on' }) },
    problems: ['object_not_found', 'state_conflict'],
    async handle(request, reply) {
      const { state: to, expiresAt, ...change } = fromBody(request.body);
      const of = { ...requesterOf(request), schemeId: request.params.id };
      const switched = to === undefined ? undefined : await schemes.switch({ ...of, to });
      if (to !== undefined && switched === undefined) return refuse(reply, 'object_not_found');
      if (switched?.kind === 'conflict') {
        return refuse(reply, 'state_conflict', { detail: switched.reason });
      }
      if (expiresAt === undefined && Object.keys(change).length === 0) {
        return schemeBody(switched!.record);
      }
      const result = await schemes.update({ ...of, ...change, expiresAt: dateOf(expiresAt) });
      if (result === undefined) return refuse(reply, 'object_not_found');
      return result.kind === 'invalid' ? refuseField(reply, result) : schemeBody(result.record);
    },
  });
}

function openTrial(schemes: Schemes): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/manager/authentication/schemes/:id/trial',
    ...MANAGER,
    access: CHANGES,
    summary: `Open a trial of a scheme for ${SCHEME_LIMITS.trialS / 60} minutes`,
    description:
      'Then send a signed request, or one with a token, to POST or GET /api/authentication/check. ' +
      'The answer, and `last_trial` here, say which part failed. One that succeeds allows the scheme to be switched on.',
    params,
    answers: { 200: answerOf('The scheme.', Scheme) },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const of = { ...requesterOf(request), schemeId: request.params.id };
      const found = await schemes.openTrial(of);
      return found === undefined ? refuse(reply, 'object_not_found') : schemeBody(found);
    },
  });
}

function removeScheme(schemes: Schemes): RouteOptions {
  return accountRoute({
    method: 'DELETE',
    url: '/api/manager/authentication/schemes/:id',
    ...MANAGER,
    access: signedIn('schemes:change'),
    summary: 'Remove a scheme for good: refused everywhere within a second, its sockets closed',
    params,
    answers: { 204: { description: 'The scheme is removed.' } },
    problems: ['object_not_found', 'state_conflict'],
    async handle(request, reply) {
      const of = { ...requesterOf(request), schemeId: request.params.id };
      const result = await schemes.remove(of);
      if (result === undefined) return refuse(reply, 'object_not_found');
      if (result.kind === 'ok') return reply.code(204).send();
      return refuse(reply, 'state_conflict', { detail: result.reason });
    },
  });
}

const dateOf = (text: string | undefined) => (text === undefined ? undefined : new Date(text));

function refuseField(reply: FastifyReply, { field, reason }: SchemeInvalid): FastifyReply {
  const isOfKeys = field === 'expires_at' || field === 'allow_cidrs';
  const code = isOfKeys ? (`${field}_invalid` as const) : 'malformed';
  return refuseBody(reply, [bodyFault(`/${field}`, code, reason)]);
}
