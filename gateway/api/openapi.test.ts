import { readFile } from 'node:fs/promises';
import { Validator } from '@seriousme/openapi-schema-validator';
import getPort from 'get-port';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace } from '../../lib/testing/namespace.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { PROBLEMS, type ProblemCode, type ProblemType } from '../http/problem-catalogue.ts';
import { problemPath } from '../http/problems.ts';

interface Operation {
  readonly summary?: string;
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
    STREAM_URL: 'wss://stream.test',
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

test('/openapi.json is the same document', async () => {
  expect(await get('/openapi.json')).toEqual(document);
});

test('/asyncapi.json is the document of the stream, with its address', async () => {
  const kept = new URL('../stream/contract/asyncapi.json', import.meta.url);
  const expected = JSON.parse(await readFile(kept, 'utf8'));
  Object.assign(expected.servers.stream, { host: 'stream.test', protocol: 'wss' });
  expect(await get('/asyncapi.json')).toEqual(expected);
});

test('every operation has a summary, an answer with an example, and its problems', () => {
  expect(operations.length).toBeGreaterThan(10);
  for (const [name, { summary, responses, requestBody }] of operations) {
    expect(summary, name).toBeTruthy();
    for (const [status, { content = {} }] of Object.entries(responses)) {
      for (const [type, { example, examples }] of Object.entries(content)) {
        const told = example ?? Object.keys(examples ?? {})[0];
        expect(told, `${name} ${status} ${type}`).toBeDefined();
      }
    }
    for (const { example, examples } of Object.values(requestBody?.content ?? {})) {
      expect(example ?? examples, `${name}: example of the body`).toBeDefined();
    }
  }
});

describe('catalogue, document and pages are equal', () => {
  test('GET /problems is the catalogue, and every relative type leads to its page', async () => {
    const { data } = (await get('/problems')) as { data: { code: ProblemCode; type: string }[] };
    expect(data.map(({ code }) => code)).toEqual(Object.keys(PROBLEMS));
    for (const { code } of data) {
      expect(await get(problemPath(code))).toMatchObject({ ...PROBLEMS[code], code });
    }
  });

  test('no operation names a code that the catalogue does not have, nor with another status', () => {
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

test('headers of answers are told, each as a plain schema', () => {
  for (const [name, { security = [], responses }] of operations) {
    for (const [status, { headers = {}, content = {} }] of Object.entries(responses)) {
      const at = `${name} ${status}`;
      for (const { schema } of Object.values(headers)) {
        expect(schema, at).toMatchObject({ type: expect.stringMatching(/^(?:integer|string)$/) });
        expect(schema, at).not.toHaveProperty('schema');
      }
      const codes = Object.keys(content['application/problem+json']?.examples ?? {});
      const kinds = codes.map((code): ProblemType => PROBLEMS[code as ProblemCode]);
      const isTold = (header: string) => headers[header] !== undefined;
      expect(isTold('Retry-After'), at).toBe(kinds.some(({ retry }) => retry === 'after'));
      expect(isTold('WWW-Authenticate'), at).toBe(status === '401');
      expect(isTold('RateLimit'), at).toBe(security.length > 0 && status !== '401');
      expect(isTold('RateLimit-Policy'), at).toBe(isTold('RateLimit'));
    }
  }
});

test('a change by session needs X-CSRF-Token, and the document says so', () => {
  for (const [name, { security = [], parameters = [] }] of operations) {
    const csrf = parameters.find((one) => one.in === 'header' && one.name === 'X-CSRF-Token');
    const bySession = security.some((one) => 'session' in one) && !name.startsWith('GET ');
    expect(csrf !== undefined, name).toBe(bySession);
    if (csrf !== undefined) expect(csrf.required === true, name).toBe(security.length === 1);
  }
});

test('every 401 has a challenge, and every problem a sentence that says what to do', () => {
  for (const [code, { status, challenge, remedy, meaning }] of Object.entries(
    PROBLEMS as Readonly<Record<string, ProblemType>>,
  )) {
    expect(challenge !== undefined, code).toBe(status === 401);
    for (const sentence of [remedy, meaning]) expect(sentence, code).toMatch(/^\S.*\.$/);
  }
});

test('the reference page is served, from this server alone', async () => {
  const { statusCode, headers, body } = await request(`${base}/docs/`);
  expect(statusCode).toBe(200);
  expect(String(headers['content-type'])).toContain('text/html');
  expect(String(headers['content-security-policy'])).toContain("default-src 'self'");
  expect(await body.text()).not.toMatch(/(?:src|href)="https?:/);
});
