import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { PROBLEMS, type ProblemCode, type ProblemType } from '../http/problem-catalogue.ts';
import { API_VERSION, PROBLEM_MEDIA_TYPE, problemPath } from '../http/problems.ts';
import type { AccessRule } from './access-rule.ts';
import { EXAMPLE_MEMBERS } from './problem-examples.ts';

/** Where the reference page is; its own routes are the only ones without an access rule. */
const REFERENCE_PATH = '/docs';

/** Whether a route belongs to the reference page: those need no access rule. */
export function isReference(url: string): boolean {
  return url === REFERENCE_PATH || url.startsWith(`${REFERENCE_PATH}/`);
}

const TAGS = [
  ['pills', 'Read pills'],
  ['account', 'The account, its plan and its use'],
  ['keys', 'API keys, by session'],
  ['session', 'Sign up, sign in, passwords'],
  ['subscription', 'Plan and payment, by session'],
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
  const codes = new Set<ProblemCode>([
    'http_malformed',
    'request_timeout',
    'headers_too_large',
    'overloaded',
    ...problemsOfRule(access, Array.isArray(route.method) ? route.method : [route.method]),
    ...(schema.querystring === undefined && schema.params === undefined ? [] : PARAMETERS),
    ...(schema.body === undefined ? [] : BODY),
    ...problems,
  ]);
  return {
    ...schema,
    security: securityOf(access),
    response: { ...(schema.response as object), ...problemAnswers([...codes]) },
  };
}

const PARAMETERS: readonly ProblemCode[] = ['parameter_invalid'];
const BODY: readonly ProblemCode[] = ['body_invalid', 'body_too_large', 'media_type_unsupported'];

/** What the guard may answer on behalf of a rule. */
function problemsOfRule(rule: AccessRule, methods: readonly string[]): ProblemCode[] {
  if (rule.by === 'nobody') return [];
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
    ...(rule.isMetered ? (['rate_limited', 'daily_quota_exceeded'] as const) : []),
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
  if (!group.some((code) => PROBLEMS[code].retry === 'after')) return {};
  return { 'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } } };
}

function problemSchema(group: readonly ProblemCode[]): object {
  return {
    type: 'object',
    required: ['type', 'title', 'status', 'code', 'retry', 'request_id'],
    properties: {
      type: { type: 'string', format: 'uri-reference' },
      title: { type: 'string' },
      status: { type: 'integer' },
      code: { type: 'string', enum: group },
      retry: { type: 'string', enum: ['never', 'after', 'same_id'] },
      retry_after_s: { type: 'integer', minimum: 1 },
      detail: { type: 'string' },
      errors: { type: 'array', items: { type: 'object' } },
      request_id: { type: 'string' },
    },
  };
}

/** An occurrence of a problem as it is answered. */
export function example(code: ProblemCode): object {
  const { title, status, retry, type }: ProblemType = PROBLEMS[code];
  const members = EXAMPLE_MEMBERS[code];
  return {
    type: type ?? problemPath(code),
    title,
    status,
    code,
    retry,
    ...(retry === 'after' ? { retry_after_s: 1 } : {}),
    ...members,
    request_id: 'r_8a1f0c2b7d3e4f56',
  };
}
