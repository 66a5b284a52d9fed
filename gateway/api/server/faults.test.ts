import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FIELD_CODES } from '../../../schemas/fault.ts';
import { hintForSymbol, SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openAccountApi } from '../testing/account-api.ts';

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}
interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly schema: Schema;
}
interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly example?: unknown }>>;
  };
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly servers?: object;
}
interface Fault {
  readonly parameter?: string;
  readonly pointer?: string;
  readonly code: string;
  readonly detail: string;
}
type Route = readonly [name: string, operation: Operation];

let accounts: Awaited<ReturnType<typeof openAccountApi>>;
let credentials: Readonly<Record<string, string>>;
let key: string;
let routes: readonly Route[];

beforeAll(async () => {
  accounts = await openAccountApi();
  const customer = await accounts.customer('faults', 'institutional');
  const made = await waitFor('a key', async () => {
    const scopes = ['read', 'stream', 'exports', 'support', 'webhooks:read', 'webhooks:write'];
    const { status, body } = await customer.send('POST', '/api/keys', { name: 'all', scopes });
    return status === 201 && body;
  });
  key = made.key;
  credentials = customer.credentials();
  const { body } = await request(`${accounts.base}/openapi.json`);
  const { paths } = (await body.json()) as { paths: Record<string, Record<string, Operation>> };
  routes = Object.entries(paths)
    .flatMap(([path, of]) =>
      Object.entries(of).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one] as const),
    )
    .filter(([, { servers }]) => servers === undefined);
});
afterAll(() => accounts?.close());

/** Sends a request to a route, with valid ids in the path. @returns its faults */
async function faultsOf(
  [name, operation]: Route,
  query: string,
  faulty?: string,
): Promise<Fault[]> {
  const valid = operation.requestBody?.content['application/json']?.example;
  const body = faulty ?? (valid === undefined ? undefined : JSON.stringify(valid));
  const [method = '', path = ''] = name.split(' ');
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, of: string) => {
    const { pattern = '' } = operation.parameters!.find((one) => one.name === of)!.schema;
    return `${/^\^([a-z]+_)/.exec(pattern)?.[1] ?? ''}aaaaaaaaaaaa`;
  });
  const byKey = operation.security?.some((one) => 'key' in one) === true;
  const answer = await waitFor('an answer', async () => {
    const got = await request(`${accounts.base}${filled}${query}`, {
      method: method as 'GET',
      headers: {
        ...(operation.security?.length === 0 ? {} : byKey ? { 'x-api-key': key } : credentials),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const json = (await got.body.json()) as { code: string; errors: Fault[] };
    return got.statusCode !== 429 && got.statusCode !== 503 && { status: got.statusCode, ...json };
  });
  const code = faulty === undefined ? 'parameter_invalid' : 'body_invalid';
  expect([answer.status, answer.code], `${name}${query} ${body ?? ''}`).toEqual([400, code]);
  for (const fault of answer.errors) {
    expect(Object.keys(FIELD_CODES)).toContain(fault.code);
    // No regular expression, and no name of an internal error.
    expect(fault.detail, name).not.toMatch(/\^\[|\\\\|\(\?|[a-z]Expected|Invalid[A-Z]|must match/);
    expect(fault.detail, name).toMatch(/\.$/);
  }
  return answer.errors;
}

const isSymbolParameter = ({ name, schema }: Parameter) =>
  name !== 'symbols' &&
  name !== 'page' &&
  schema.pattern?.includes(SYMBOL_PATTERN.slice(1, -1)) === true;
const isTime = ({ name }: Parameter) => name === 'from' || name === 'to';

/** The same fault, and the parameters that can have it; the fault depends on the schema alone. */
const CASES: readonly (readonly [
  name: string,
  has: (parameter: Parameter) => boolean,
  value: (schema: Schema) => string,
  code: string,
  detail: (parameter: Parameter) => string,
])[] = [
  ...(['0.5', '1,5', 'NaN', 'ten'] as const).map(
    (text) =>
      [
        `a whole number: ${text}`,
        ({ schema }: Parameter) => schema.type === 'integer',
        () => text,
        'not_an_integer',
        ({ name, schema }: Parameter) =>
          `\`${name}\` must be a whole number from ${schema.minimum} to ${schema.maximum}.` +
          ({
            '1,5': ' Write decimals with a point: 1.5.',
            NaN: ' NaN and Infinity are not numbers here: send a finite one.',
          }[text as string] ?? ''),
      ] as const,
  ),
  [
    'a whole number above its range',
    ({ schema }) => schema.type === 'integer',
    ({ maximum }) => String(maximum! + 1),
    'out_of_range',
    ({ name, schema }) =>
      `\`${name}\` must be a whole number from ${schema.minimum} to ${schema.maximum}.`,
  ],
  [
    'an unknown name',
    ({ schema }) => schema.enum !== undefined,
    () => 'nonsense',
    'not_a_choice',
    ({ name, schema }) => `\`${name}\` must be one of ${schema.enum!.join(', ')}.`,
  ],
  [
    'a symbol in lower case',
    isSymbolParameter,
    () => '7203.t',
    'symbol_malformed',
    () => hintForSymbol('7203.t'),
  ],
  [
    'a time without a zone',
    isTime,
    () => '2026-11-20T00:00:00',
    'timestamp_no_zone',
    () =>
      'The zone is missing. Python: datetime.now(timezone.utc).isoformat(); JavaScript: toISOString().',
  ],
  [
    'a Unix time',
    isTime,
    () => '1763600000',
    'timestamp_malformed',
    () => 'This looks like a Unix time. Send ISO 8601, e.g. 2026-11-20T01:02:03.004Z.',
  ],
];

describe('the same fault of a parameter has the same answer on every route', () => {
  test.each(CASES)('%s', async (_name, has, textOf, code, detailOf) => {
    let checked = 0;
    for (const route of routes) {
      for (const parameter of route[1].parameters ?? []) {
        if (parameter.in !== 'query' || !has(parameter)) continue;
        const { name, schema } = parameter;
        const faults = await faultsOf(route, `?${name}=${encodeURIComponent(textOf(schema))}`);
        expect(faults, `${route[0]} ${name}`).toContainEqual({
          parameter: name,
          code,
          detail: detailOf(parameter),
        });
        checked += 1;
      }
    }
    expect(checked).toBeGreaterThan(3);
  });

  test('unknown and repeated parameters', async () => {
    for (const route of routes) {
      const own = (route[1].parameters ?? []).filter((one) => one.in === 'query');
      if (own.length === 0) continue;
      const names = own.map(({ name }) => name).join(', ');
      const unknown = { parameter: 'nonsense', code: 'parameter_unknown' };
      const detail = `Unknown here. Known: ${names}.`;
      expect(await faultsOf(route, '?nonsense=1'), route[0]).toContainEqual({ ...unknown, detail });
      const { name: parameter } = own[0]!;
      expect(await faultsOf(route, `?${parameter}=1&${parameter}=2`), route[0]).toContainEqual({
        parameter,
        code: 'parameter_repeated',
        detail: 'Give this parameter only once.',
      });
    }
  });
});

/** Events of a provider, and a body that only proves its digest, are not for us to describe. */
const ANY_BODY = /billing|\/authentication\/check/;

describe('the same fault of a body has the same answer on every route', () => {
  test.each([
    ['{"confidence": 91,5}', '#', 'json_syntax', 'Decimals are written with a point'],
    ['{"confidence": NaN}', '#', 'json_syntax', 'JSON has no NaN and no Infinity'],
    ['{"confidence": 91', '#', 'json_syntax', 'The document ends too early'],
    ['{"a":1,"a":2}', '#/a', 'duplicate_key', 'Duplicate key'],
    ['[]', '#', 'not_an_object', 'The body must be an object with '],
    ['{"nonsense":1}', '#/nonsense', 'unknown_field', 'Unknown here. Known: '],
  ])('%s', async (body, pointer, code, detail) => {
    let checked = 0;
    for (const route of routes) {
      if (route[1].requestBody === undefined || ANY_BODY.test(route[0])) continue;
      const faults = await faultsOf(route, '', body);
      const wanted = { pointer, code, detail: expect.stringContaining(detail) };
      expect(faults, route[0]).toContainEqual(wanted);
      checked += 1;
    }
    expect(checked).toBeGreaterThan(10);
  });
});
