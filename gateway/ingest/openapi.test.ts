import { Validator } from '@seriousme/openapi-schema-validator';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { FIELD_CODES } from '../../schemas/fault.ts';
import { PROBLEMS } from '../http/problem-catalogue.ts';
import { pillOf, useIngest } from './testing/post.ts';

const { opened, post } = useIngest();

async function get(path: string) {
  const { statusCode, headers, body } = await request(`${opened().ingest.url}${path}`);
  return { status: statusCode, headers, json: (await body.json()) as never };
}

interface Document {
  readonly paths: Readonly<Record<string, { readonly post: Operation }>>;
}
interface Operation {
  readonly requestBody: {
    readonly content: Readonly<Record<string, { readonly example: unknown }>>;
  };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly examples?: object }>> }>
  >;
}

test('ingest serves its own OpenAPI 3.1 document', async () => {
  const { status, headers, json } = await get('/openapi.json');
  expect([status, headers.etag]).toEqual([200, expect.stringMatching(/^"/)]);
  const { valid, errors } = await new Validator().validate(structuredClone(json));
  expect(errors ?? []).toEqual([]);
  expect(valid).toBe(true);
});

test('the examples of the document are accepted', async () => {
  const { paths } = (await get('/openapi.json')).json as Document;
  for (const [path, { post: operation }] of Object.entries(paths)) {
    const url = `${opened().ingest.url}${path}`;
    for (const [type, { example }] of Object.entries(operation.requestBody.content)) {
      const answer = await post(example, { url, type });
      expect([answer.status, answer.json.status], `${path} ${type}`).toEqual([200, 'ok']);
    }
  }
});

test('the type of a problem, and the code of each fault, lead to a page of ingest itself', async () => {
  const refused = await post(pillOf({ symbol: '7203.t', confidence: '91', more: 1 }));
  expect(refused.status).toBe(400);
  const page = await get(String(refused.json.type));
  expect(page.json).toMatchObject({ code: 'pill_invalid', ...PROBLEMS.pill_invalid });
  const errors = refused.json.errors as { readonly code: keyof typeof FIELD_CODES }[];
  expect(errors.length).toBe(3);
  for (const { code } of errors) {
    const { json } = await get(`/problems/${code.replaceAll('_', '-')}`);
    expect(json).toEqual({ code, meaning: FIELD_CODES[code] });
  }
  expect((await get('/problems/nothing')).status).toBe(404);
});

test('the document names the status of every problem that it lists', async () => {
  const { paths } = (await get('/openapi.json')).json as Document;
  for (const { post: operation } of Object.values(paths)) {
    for (const [status, { content = {} }] of Object.entries(operation.responses)) {
      const codes = Object.keys(content['application/problem+json']?.examples ?? {});
      for (const code of codes) {
        expect(PROBLEMS[code as keyof typeof PROBLEMS].status, code).toBe(Number(status));
      }
    }
  }
});
