import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { PERMISSIONS, type Role } from '../../../domain/access/roles.ts';
import { type Tier, tierThatHas } from '../../../domain/access/tiers.ts';
import { prepareDocument } from '../../http/document.ts';
import { GENERATOR_SCHEME, INGEST_TAG, ingestPaths } from '../../http/ingest-document.ts';
import type { ProblemCode } from '../../http/problem-catalogue.ts';
import { problemAnswers } from '../../http/problem-documents.ts';
import { API_VERSION } from '../../http/problems.ts';
import { type AccessRule, type AccountRule, needsCsrfToken, OPEN } from './access-rule.ts';
import { isOfSymbols } from './desk-symbols.ts';
import { REFERENCE_PATH, referencePage } from './reference-page.ts';
import { sessionCookieName } from './session-cookie.ts';

/** Whether a route belongs to the reference page: only its own routes have no access rule. */
export function isReference(url: string): boolean {
  return url === REFERENCE_PATH || url.startsWith(`${REFERENCE_PATH}/`);
}

const TAGS = [
  ['pills', 'Read pills'],
  ['market', 'Which symbols exist, and whether their pills can be acted on now'],
  ['analytics', 'Spreads, market states and confidence over a time range'],
  ['account', 'The account, its plan and its usage'],
  ['keys', 'API keys (by session)'],
  ['session', 'Sign-up, sign-in, passwords and the second factor'],
  ['subscription', 'Plan and payment (by session)'],
  ['generator', 'What became of the pills of a generator (by its credential)'],
  ['webhooks', 'Events posted to your own URLs'],
  ['destinations', 'Pills written to systems of yours (Institutional)'],
  ['manager', 'The API manager of Institutional accounts (by session)'],
  ['service', 'State of the service, and the meaning of its answers'],
] as const;

/** Adds the OpenAPI 3.1 document, generated from the routes added later, and its reference page. */
export async function addOpenApi(
  app: FastifyInstance,
  { publicUrl, ingestUrl }: { readonly publicUrl: string; readonly ingestUrl: string },
): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'pillole',
        version: API_VERSION,
        description:
          'Quantitative trading signals of APAC markets. Every error is a problem of RFC 9457 ' +
          'with a stable `code`; GET /problems lists them, and the codes of single faults. The headers ' +
          '`RateLimit-Policy` and `RateLimit` show the limits. `x-tier` of an operation is the ' +
          'lowest tier that includes it, `none` if it needs no subscription. The pages of a list ' +
          'follow each other by `next`, the path of the next page.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl }],
      externalDocs: { url: '/asyncapi.json', description: 'The stream, as AsyncAPI' },
      tags: [...TAGS.map(([name, description]) => ({ name, description })), INGEST_TAG],
      components: {
        securitySchemes: {
          key: {
            type: 'apiKey',
            in: 'header',
            name: 'X-API-Key',
            description:
              'An operation lists the scope that the key needs; none = every key may call it. ' +
              '`read` and `webhooks:write` include `webhooks:read`.',
          },
          signature: {
            type: 'apiKey',
            in: 'header',
            name: 'Signature',
            description:
              'Institutional: an HTTP message signature (RFC 9421) with `Signature-Input`, in place ' +
              'of a key; see /api/manager/authentication.',
          },
          token: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description: 'Institutional: a token of your own issuer, in place of a key.',
          },
          generator: GENERATOR_SCHEME,
          session: { type: 'apiKey', in: 'cookie', name: sessionCookieName(publicUrl) },
        },
      },
    },
    transform: ({ schema, url, route }) => ({ url, schema: complete(schema, route) }),
    transformObject: (document) => {
      if (!('openapiObject' in document)) throw new Error('The document is not OpenAPI 3.');
      Object.assign(document.openapiObject.paths ?? {}, ingestPaths(ingestUrl));
      return document.openapiObject;
    },
  });
  await app.register(swaggerUi, referencePage());
  const options = { config: { access: OPEN }, schema: { hide: true } };
  let answer: ReturnType<typeof prepareDocument>;
  app.addHook('onReady', async () => {
    answer = prepareDocument(app.swagger());
  });
  app.get('/openapi.json', options, (request, reply) => {
    const { status, headers, body } = answer(request.headers);
    return reply.code(status).headers(headers).send(body);
  });
}

/** Adds problems, headers and security that follow from the access rule and the input. */
function complete(schema: FastifySchema | undefined, route: RouteOptions): FastifySchema {
  const { access, problems = [] } = route.config ?? {};
  if (schema === undefined || access === undefined) return { ...schema, hide: true };
  const methods = Array.isArray(route.method) ? route.method : [route.method];
  const hasParameters = schema.querystring !== undefined || schema.params !== undefined;
  const named = {
    ...schema,
    operationId: operationIdOf(methods[0]!, route.url),
    'x-tier': tierOf(access),
    ...rolesOf(access),
  };
  const codes = new Set<ProblemCode>([
    ...([
      'http_malformed',
      'local_only',
      'proxy_refused',
      'request_timeout',
      'headers_too_large',
      'overloaded',
    ] as const),
    ...problemsOfRule(access, methods),
    ...(hasParameters ? (['parameter_invalid'] as const) : []),
    ...(schema.body === undefined ? [] : BODY),
    ...problems,
  ]);
  const response: Answers = { ...(schema.response as Answers), ...problemAnswers([...codes]) };
  if (access.by === 'anyone') return { ...named, security: [], response };
  if (access.by === 'generator') return { ...named, security: [{ generator: [] }], response };
  return {
    ...named,
    ...(methods.some((method) => needsCsrfToken(access, method)) ? csrfHeader(access) : {}),
    security: access.accepts.flatMap((name) =>
      name === 'key'
        ? ['key', 'signature', 'token'].map((one) => ({ [one]: scopesOf(access) }))
        : [{ [name]: [] }],
    ),
    response: addLimits(response),
  };
}

/** `GET /api/keys/:id` → `getKeysById`: stable, and unique as long as method and path are. */
function operationIdOf(method: string, url: string): string {
  const words = url.split(/[^A-Za-z0-9:]+/).filter((word) => word !== '' && word !== 'api');
  const parts = words.map((word) =>
    word.startsWith(':') ? `By${capital(word.slice(1))}` : capital(word),
  );
  return `${method.toLowerCase()}${parts.join('')}`;
}

const capital = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;

/** The lowest tier that includes an operation; `none` if it needs no subscription. */
function tierOf(access: AccessRule): Tier | 'none' {
  const capability = access.by === 'account' ? access.capability : undefined;
  return capability === undefined ? 'none' : tierThatHas(capability);
}

/** The roles of members that may call an operation by session. */
function rolesOf(access: AccessRule): { readonly 'x-roles'?: readonly Role[] } {
  if (access.by !== 'account' || !access.accepts.includes('session')) return {};
  return { 'x-roles': PERMISSIONS[access.permission] };
}

/** The names that OpenAPI 3.1 allows beside an API key: what the key must be allowed to do. */
function scopesOf({ scope }: AccountRule): readonly string[] {
  return scope === undefined || scope === 'any' ? [] : [scope];
}

type Answers = Record<string, { readonly headers?: object }>;

/** The CSRF header that accompanies the cookie. */
function csrfHeader({ accepts }: AccountRule): { readonly headers?: object } {
  if (!accepts.includes('session')) return {};
  const description = '`csrf_token` of GET /api/session; required with a session, not with a key';
  const required = accepts.includes('key') ? [] : ['X-CSRF-Token'];
  const properties = { 'X-CSRF-Token': { type: 'string', description } };
  return { headers: { type: 'object', properties, required } };
}

/** Adds the limits to every answer to an account; a 401 has no account. */
function addLimits(answers: Answers): Answers {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => [
      status,
      status === '401' ? answer : { ...answer, headers: { ...RATE_HEADERS, ...answer.headers } },
    ]),
  );
}

/** Schemas of headers; @fastify/swagger wraps them for the document. */
const RATE_HEADERS = {
  'RateLimit-Policy': {
    type: 'string',
    description:
      'Limits of the account: quota `q`, window `w` in seconds. Absent when the account is not ' +
      'known yet or has no active subscription',
    examples: ['"daily";q=10000;w=86400, "burst";q=100;w=2'],
  },
  RateLimit: {
    type: 'string',
    description: 'Calls left of each limit, `r`; full again after `t` seconds',
    examples: ['"daily";r=9997;t=3600, "burst";r=99;t=1'],
  },
} as const;

const KEY_PROBLEMS = [
  ...(['key_missing', 'key_scheme_wrong', 'key_in_url', 'key_malformed', 'key_invalid'] as const),
  ...(['keys_refused', 'credentials_mixed', 'signature_malformed', 'signature_invalid'] as const),
  ...(['signature_replayed', 'access_token_malformed', 'access_token_invalid'] as const),
  ...(['issuer_unavailable'] as const),
];

const BODY: readonly ProblemCode[] = ['body_invalid', 'body_too_large', 'media_type_unsupported'];

const OF_GENERATORS: readonly ProblemCode[] = [
  ...(['credential_missing', 'credential_invalid'] as const),
  ...(['generator_credentials_off', 'rate_limited'] as const),
];

/** Problems that the guard may answer for a rule. */
function problemsOfRule(rule: AccessRule, methods: readonly string[]): ProblemCode[] {
  if (rule.by === 'anyone') return rule.isLimited === true ? ['rate_limited'] : [];
  if (rule.by === 'generator') return [...OF_GENERATORS];
  const byKey = rule.accepts.includes('key');
  const bySession = rule.accepts.includes('session');
  return [
    ...(byKey ? KEY_PROBLEMS : (['session_required'] as const)),
    'accounts_unavailable',
    ...(byKey ? (['address_refused'] as const) : []),
    ...(byKey && rule.scope !== 'any' ? (['scope_missing'] as const) : []),
    ...(byKey && isOfSymbols(rule) ? (['symbol_refused'] as const) : []),
    ...(bySession && methods.some((method) => needsCsrfToken(rule, method))
      ? (['csrf_token_invalid'] as const)
      : []),
    ...(bySession && rule.permission !== 'profile'
      ? (['permission_missing', 'membership_inactive'] as const)
      : []),
    ...(rule.needsFreshFactor === true ? (['second_factor_stale'] as const) : []),
    ...(rule.capability === undefined
      ? []
      : (['subscription_required', 'account_suspended', 'tier_too_low'] as const)),
    'rate_limited',
    ...(rule.isMetered ? (['daily_quota_exceeded'] as const) : []),
  ];
}
