import { readFile } from 'node:fs/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Validator } from '@seriousme/openapi-schema-validator';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TIER_NAMES } from '../../../domain/access/tiers.ts';
import { FIELD_CODES } from '../../../schemas/fault.ts';
import { createNamespace } from '../../../testing/namespace.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { PROBLEMS, type ProblemCode, type ProblemType } from '../../http/problem-catalogue.ts';
import { problemPath } from '../../http/problems.ts';

interface Operation {
  readonly summary?: string;
  readonly operationId?: string;
  readonly 'x-tier'?: string;
  readonly servers?: readonly { readonly url: string }[];
  readonly security?: readonly object[];
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly required?: boolean;
  }[];
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly headers?: Readonly<Record<string, { schema: object; description?: string }>>;
        readonly content?: Readonly<
          Record<
            string,
            { readonly example?: unknown; readonly examples?: Record<string, unknown> }
          >
        >;
      }
    >
  >;
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { example?: unknown; examples?: object }>>;
  };
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

let api: TestProcess;
let base: string;
let document: Document;
let operations: [string, Operation][];

beforeAll(async () => {
  const namespace = await createNamespace();
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    PUBLIC_URL: 'https://api.test',
    INGEST_URL: 'https://ingest.test',
    STREAM_URL: 'wss://stream.test',
    DEDICATED_URL: 'wss://{name}.test/{port}',
  });
  await api.ready();
  document = (await get('/docs/json')) as Document;
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  );
});

afterAll(async () => {
  await api?.stop();
});

async function get(path: string): Promise<unknown> {
  const { statusCode, body } = await request(`${base}${path}`);
  expect(statusCode).toBe(200);
  return body.json();
}

test('the document is valid OpenAPI 3.1, by an independent validator', async () => {
  expect(document.openapi).toBe('3.1.0');
  const { valid, errors } = await new Validator().validate({ ...structuredClone(document) });
  expect(errors ?? []).toEqual([]);
  expect(valid).toBe(true);
});

describe('/openapi.json', () => {
  const ask = (path: string, headers: Readonly<Record<string, string>>) =>
    request(`${base}${path}`, { headers });

  test('is the same document', async () => {
    expect(await get('/openapi.json')).toEqual(document);
  });

  test.each([
    ['br', 'gzip, deflate, br', brotliDecompressSync],
    ['gzip', 'gzip, br;q=0', gunzipSync],
    [undefined, 'identity', (bytes: Buffer) => bytes],
  ] as const)('is sent as %s to a client that accepts %s', async (encoding, accept, decode) => {
    const { headers, body } = await ask('/openapi.json', { 'accept-encoding': accept });
    expect(headers['content-encoding']).toBe(encoding);
    expect(headers.vary).toContain('Accept-Encoding');
    const bytes = Buffer.from(await body.arrayBuffer());
    expect(JSON.parse(decode(bytes).toString())).toEqual(document);
    const again = { 'accept-encoding': accept, 'if-none-match': String(headers.etag) };
    const second = await ask('/openapi.json', again);
    expect([second.statusCode, await second.body.text()]).toEqual([304, '']);
    expect(headers.etag).toMatch(/^"[\w-]+"$/);
  });

  test('each encoding has a tag of its own', async () => {
    const tags = ['br', 'gzip', 'identity'].map(async (accept) => {
      const { headers, body } = await ask('/openapi.json', { 'accept-encoding': accept });
      await body.dump();
      return headers.etag;
    });
    expect(new Set(await Promise.all(tags)).size).toBe(3);
  });
});

test('every operation has an id of its own, and the tier that includes it', () => {
  const ids = operations.map(([, { operationId }]) => operationId);
  expect(new Set(ids).size).toBe(operations.length);
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]+$/);
  const tiers = Object.fromEntries(operations.map(([name, one]) => [name, one['x-tier']]));
  expect(tiers).toMatchObject({
    'GET /api/status': 'none',
    'GET /api/account': 'none',
    'GET /api/pills/latest': 'basic',
    'GET /api/analytics/bars': 'pro',
    'POST /api/pillole': 'none',
  });
  for (const [name, tier] of Object.entries(tiers)) {
    expect(['none', ...TIER_NAMES], name).toContain(tier);
  }
});

test('the operations of ingest name its address, and its limits', async () => {
  const ingest = operations.filter(([, { servers }]) => servers !== undefined);
  expect(ingest.map(([name]) => name)).toEqual(['POST /api/pillole', 'POST /api/pillole/batch']);
  for (const [, { servers }] of ingest) expect(servers).toEqual([{ url: 'https://ingest.test' }]);
});

test('/asyncapi.json is the document of the stream, with its addresses', async () => {
  const kept = new URL('../../stream/protocol/asyncapi.json', import.meta.url);
  const expected = JSON.parse(await readFile(kept, 'utf8'));
  Object.assign(expected.servers.stream, { host: 'stream.test', protocol: 'wss' });
  Object.assign(expected.servers.dedicated, {
    host: '{name}.test',
    pathname: '/{port}',
    protocol: 'wss',
    variables: { name: expect.anything(), port: expect.anything() },
  });
  expect(await get('/asyncapi.json')).toEqual(expected);
});

test('every operation has a summary, an answer with an example, and its problems', () => {
  expect(operations.length).toBeGreaterThan(10);
  for (const [name, { summary, responses, requestBody }] of operations) {
    expect(summary, name).toBeTruthy();
    for (const [status, { content = {} }] of Object.entries(responses)) {
      for (const [type, { example, examples }] of Object.entries(content)) {
        const shown = example ?? Object.keys(examples ?? {})[0];
        expect(shown, `${name} ${status} ${type}`).toBeDefined();
      }
    }
    for (const { example, examples } of Object.values(requestBody?.content ?? {})) {
      expect(example ?? examples, `${name}: example of the body`).toBeDefined();
    }
  }
});

describe('catalogue, document and pages are equal', () => {
  test('GET /problems is the catalogue, and every relative type leads to its page', async () => {
    const { data, faults } = (await get('/problems')) as {
      data: { code: ProblemCode; type: string }[];
      faults: { code: string; meaning: string }[];
    };
    expect(data.map(({ code }) => code)).toEqual(Object.keys(PROBLEMS));
    expect(Object.fromEntries(faults.map(({ code, meaning }) => [code, meaning]))).toEqual(
      FIELD_CODES,
    );
    expect(await get('/problems/symbol-malformed')).toEqual({
      code: 'symbol_malformed',
      meaning: FIELD_CODES.symbol_malformed,
    });
    for (const { code } of data) {
      expect(await get(problemPath(code))).toMatchObject({ ...PROBLEMS[code], code });
    }
  });

  test('every operation names only codes of the catalogue, with their status', () => {
    for (const [name, { responses }] of operations) {
      for (const [status, { content = {} }] of Object.entries(responses)) {
        const codes = Object.keys(content['application/problem+json']?.examples ?? {});
        for (const code of codes) {
          expect(PROBLEMS[code as ProblemCode]?.status, `${name} ${code}`).toBe(Number(status));
        }
      }
    }
  });
});

test('headers of answers are documented, each as a plain schema', () => {
  for (const [name, { security = [], responses }] of operations) {
    for (const [status, { headers = {}, content = {} }] of Object.entries(responses)) {
      const at = `${name} ${status}`;
      for (const { schema } of Object.values(headers)) {
        expect(schema, at).toMatchObject({ type: expect.stringMatching(/^(?:integer|string)$/) });
        expect(schema, at).not.toHaveProperty('schema');
      }
      const codes = Object.keys(content['application/problem+json']?.examples ?? {});
      const kinds = codes.map((code): ProblemType => PROBLEMS[code as ProblemCode]);
      const isDocumented = (header: string) => headers[header] !== undefined;
      expect(isDocumented('Retry-After'), at).toBe(kinds.some(({ retry }) => retry === 'after'));
      expect(isDocumented('WWW-Authenticate'), at).toBe(status === '401');
      const isOfAccount = security.some((one) => 'key' in one || 'session' in one);
      expect(isDocumented('RateLimit'), at).toBe(isOfAccount && status !== '401');
      expect(isDocumented('RateLimit-Policy'), at).toBe(isDocumented('RateLimit'));
    }
  }
});

/** Reads that cost a call. */
const METERED = /^GET \/api\/(?:pills|analytics|market|symbols)\b/;

test('a change or a metered read by session needs X-CSRF-Token, and the document says so', () => {
  for (const [name, { security = [], parameters = [] }] of operations) {
    const csrf = parameters.find((one) => one.in === 'header' && one.name === 'X-CSRF-Token');
    const isFree = name.startsWith('GET ') && !METERED.test(name);
    const bySession = security.some((one) => 'session' in one);
    expect(csrf !== undefined, name).toBe(bySession && !isFree);
    if (csrf !== undefined) expect(csrf.required === true, name).toBe(security.length === 1);
  }
});

test('every 401 has a challenge, and every problem a remedy', () => {
  for (const [code, { status, challenge, remedy, meaning }] of Object.entries(
    PROBLEMS as Readonly<Record<string, ProblemType>>,
  )) {
    expect(challenge !== undefined, code).toBe(status === 401);
    for (const sentence of [remedy, meaning]) expect(sentence, code).toMatch(/^\S.*\.$/);
  }
});

test('the reference page is served entirely by this server', async () => {
  const { statusCode, headers, body } = await request(`${base}/docs/`);
  expect(statusCode).toBe(200);
  expect(String(headers['content-type'])).toContain('text/html');
  const policy = String(headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('unsafe');
  expect(await body.text()).not.toMatch(/(?:src|href)="https?:/);
});
