import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { PROBLEMS, type ProblemCode, type ProblemType } from '../http/problem-catalogue.ts';
import { API_VERSION, PROBLEM_MEDIA_TYPE, problemPath } from '../http/problems.ts';
import type { AccessRule, AccountRule } from './access-rule.ts';
import { EXAMPLE_MEMBERS } from './problem-examples.ts';

/** Where the reference page is; its own routes are the only ones without an access rule. */
const REFERENCE_PATH = '/docs';

/** Whether a route belongs to the reference page: those need no access rule. */
export function isReference(url: string): boolean {
  return url === REFERENCE_PATH || url.startsWith(`${REFERENCE_PATH}/`);
}

const TAGS = [
  ['pills', 'Read pills'],
  ['market', 'What exists, and whether one may act on it now'],
  ['analytics', 'What spreads, states and confidence were over a time'],
  ['account', 'The account, its plan and its use'],
  ['keys', 'API keys, by session'],
  ['session', 'Sign up, sign in, passwords'],
  ['subscription', 'Plan and payment, by session'],
  ['webhooks', 'Events posted to addresses of yours'],
  ['manager', 'The API manager of Institutional accounts, by session'],
  ['service', 'How the service is, and what its answers mean'],
] as const;

/** Adds the OpenAPI 3.1 document, made from the routes that follow, and its reference page. */
export async function addOpenApi(app: FastifyInstance, publicUrl: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'pillole',
        version: API_VERSION,
        description:
          'Quantitative trading signals of APAC markets. Every error is a problem of RFC 9457 with ' +
          'a stable `code`; GET /problems lists them. Limits are told by `RateLimit-Policy` and ' +
          '`RateLimit`.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl }],
      externalDocs: { url: '/asyncapi.json', description: 'The stream, as AsyncAPI' },
      tags: TAGS.map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
          session: { type: 'apiKey', in: 'cookie', name: 'pillole_session' },
        },
      },
    },
    transform: ({ schema, url, route }) => ({ url, schema: complete(schema, route) }),
  });
  await app.register(swaggerUi, { routePrefix: REFERENCE_PATH, staticCSP: true });
  const config = { access: { by: 'nobody' } } as const;
  app.get('/openapi.json', { config, schema: { hide: true } }, () => app.swagger());
}

/** Adds what follows from the rule of a route and from how its input is read. */
function complete(schema: FastifySchema | undefined, route: RouteOptions): FastifySchema {
  const { access, problems = [] } = route.config ?? {};
  if (schema === undefined || access === undefined) return { ...schema, hide: true };
  const methods = Array.isArray(route.method) ? route.method : [route.method];
  const codes = new Set<ProblemCode>([
    'http_malformed',
    'request_timeout',
    'headers_too_large',
    'overloaded',
    ...problemsOfRule(access, methods),
    ...(schema.querystring === undefined && schema.params === undefined ? [] : PARAMETERS),
    ...(schema.body === undefined ? [] : BODY),
    ...problems,
  ]);
  const answers: Record<string, Described> = {
    ...(schema.response as Record<string, Described>),
    ...problemAnswers([...codes]),
  };
  const isSafe = methods.includes('GET');
  return {
    ...schema,
    ...(isSafe || access.by === 'nobody' ? {} : headersWanted(access)),
    security: securityOf(access),
    response: access.by === 'nobody' ? answers : tellLimits(answers),
  };
}

interface Described {
  readonly headers?: object;
}

/** What must be repeated with the cookie by a request that changes something. */
function headersWanted({ accepts }: AccountRule): { readonly headers?: object } {
  if (!accepts.includes('session')) return {};
  const description = '`csrf_token` of GET /api/session; wanted with a session, not with a key';
  const required = accepts.includes('key') ? [] : ['X-CSRF-Token'];
  const properties = { 'X-CSRF-Token': { type: 'string', description } };
  return { headers: { type: 'object', properties, required } };
}

/** The limits stand in every answer to an account: a 401 is to nobody. */
function tellLimits(answers: Record<string, Described>): Record<string, Described> {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => [
      status,
      status === '401' ? answer : { ...answer, headers: { ...RATE_HEADERS, ...answer.headers } },
    ]),
  );
}

/** Schemas of headers: the document's own wrapping of them is added by @fastify/swagger. */
const RATE_HEADERS = {
  'RateLimit-Policy': {
    type: 'string',
    description:
      'Limits of the account: quota `q`, window `w` in seconds. Absent when the account is not ' +
      'known yet, or has no subscription in force',
    examples: ['"daily";q=10000;w=86400, "burst";q=100;w=2'],
  },
  RateLimit: {
    type: 'string',
    description: 'What is left of each: `r`, full again after `t` seconds',
    examples: ['"daily";r=9997;t=3600, "burst";r=99;t=1'],
  },
} as const;

const PARAMETERS: readonly ProblemCode[] = ['parameter_invalid'];
const BODY: readonly ProblemCode[] = ['body_invalid', 'body_too_large', 'media_type_unsupported'];

/** What the guard may answer on behalf of a rule. */
function problemsOfRule(rule: AccessRule, methods: readonly string[]): ProblemCode[] {
  if (rule.by === 'nobody') return rule.isLimited === true ? ['rate_limited'] : [];
  const byKey = rule.accepts.includes('key');
  const bySession = rule.accepts.includes('session');
  return [
    byKey ? 'key_invalid' : 'session_required',
    'accounts_unavailable',
    ...(byKey ? (['address_refused'] as const) : []),
    ...(byKey && rule.scope !== undefined ? (['scope_missing'] as const) : []),
    ...(bySession && !methods.includes('GET') ? (['csrf_token_invalid'] as const) : []),
    ...(rule.capability === undefined
      ? []
      : (['subscription_required', 'account_suspended', 'tier_too_low'] as const)),
    'rate_limited',
    ...(rule.isMetered ? (['daily_quota_exceeded'] as const) : []),
  ];
}

function securityOf(rule: AccessRule): Record<string, string[]>[] {
  return rule.by === 'nobody' ? [] : rule.accepts.map((name) => ({ [name]: [] }));
}

/** Groups problems by status, as OpenAPI has one answer for each. */
function problemAnswers(codes: readonly ProblemCode[]): Record<string, object> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      status,
      {
        description: group.map((code) => `\`${code}\`: ${PROBLEMS[code].meaning}`).join('\n\n'),
        headers: headersOf(group),
        content: {
          [PROBLEM_MEDIA_TYPE]: {
            schema: problemSchema(group),
            examples: Object.fromEntries(group.map((code) => [code, { value: example(code) }])),
          },
        },
      },
    ]),
  );
}

function headersOf(group: readonly ProblemCode[]): Record<string, object> {
  const problems: readonly ProblemType[] = group.map((code) => PROBLEMS[code]);
  const challenges = problems.flatMap(({ challenge = [] }) => challenge);
  return {
    ...(problems.some(({ retry }) => retry === 'after')
      ? { 'Retry-After': { type: 'integer', description: 'Seconds to wait' } }
      : {}),
    ...(challenges.length === 0
      ? {}
      : { 'WWW-Authenticate': { type: 'string', examples: [...new Set(challenges)] } }),
  };
}

function problemSchema(group: readonly ProblemCode[]): object {
  return {
    type: 'object',
    required: ['type', 'title', 'status', 'code', 'retry', 'remedy', 'request_id'],
    properties: {
      type: { type: 'string', format: 'uri-reference' },
      title: { type: 'string' },
      status: { type: 'integer' },
      code: { type: 'string', enum: group },
      retry: { type: 'string', enum: ['never', 'after', 'same_id', 'check'] },
      retry_after_s: { type: 'integer', minimum: 1 },
      remedy: { type: 'string', description: 'What to do' },
      detail: { type: 'string' },
      errors: { type: 'array', items: { type: 'object' } },
      request_id: { type: 'string' },
    },
  };
}

/** An occurrence of a problem as it is answered. */
function example(code: ProblemCode): object {
  const { title, status, retry, remedy, type }: ProblemType = PROBLEMS[code];
  const members = EXAMPLE_MEMBERS[code];
  return {
    type: type ?? problemPath(code),
    title,
    status,
    code,
    retry,
    ...(retry === 'after' ? { retry_after_s: 1 } : {}),
    ...members,
    remedy,
    request_id: 'r_8a1f0c2b7d3e4f56',
  };
}
