import { expect, test } from 'vitest';
import { callsOf, examplePath, type OpenApi, operationsOf } from './reference.ts';

const DOCUMENT: OpenApi = {
  servers: [{ url: 'https://api.example.com' }],
  paths: {
    '/api/webhooks/{id}': {
      patch: {
        operationId: 'patchWebhook',
        summary: 'Change',
        tags: ['webhooks'],
        'x-tier': 'pro',
        security: [{ key: ['webhooks:write'] }, { session: [] }],
        parameters: [
          { name: 'id', in: 'path', required: true, example: 'ep_1' },
          { name: 'dry', in: 'query' },
        ],
        requestBody: { content: { 'application/json': { example: { name: "o'clock" } } } },
        responses: {
          200: { description: 'Changed.', content: { 'application/json': { example: { a: 1 } } } },
          404: { description: 'Unknown.' },
        },
      },
    },
    '/api/status': {
      get: {
        operationId: 'getStatus',
        summary: 'State',
        'x-tier': 'none',
        security: [],
        responses: { 200: { description: 'The state.' } },
      },
    },
  },
};

test('an operation has its plan, scope, example and answers', () => {
  const [patch, status] = operationsOf(DOCUMENT);
  expect(patch).toMatchObject({
    ...{ method: 'PATCH', tier: 'pro', scope: 'webhooks:write', takesSession: true },
    answers: [
      { status: '200', example: '{\n  "a": 1\n}' },
      { status: '404', example: undefined },
    ],
  });
  expect(status).toMatchObject({ tier: undefined, scope: undefined, takesSession: true });
});

test('a path has the given values, else the examples; values are escaped', () => {
  const [patch] = operationsOf(DOCUMENT);
  expect(examplePath(patch!)).toBe('/api/webhooks/ep_1');
  expect(examplePath(patch!, { id: "a/b'c", dry: '1&2' })).toBe(
    '/api/webhooks/a%2Fb%27c?dry=1%262',
  );
});

test('without a given value only the first example is there, because others may exclude it', () => {
  const optional = (name: string) => ({ name, in: 'query', example: `an ${name}` });
  const operation = { path: '/p', parameters: [optional('symbol'), optional('symbols')] };
  expect(examplePath(operation)).toBe('/p?symbol=an+symbol');
  expect(examplePath(operation, { symbols: 'A,B' })).toBe('/p?symbols=A%2CB');
});

test('calls quote what a shell would read, and name the key only where one is needed', () => {
  const [patch, status] = operationsOf(DOCUMENT);
  const [[, curl], [, typescript], [, python]] = callsOf(patch!, '/api/webhooks/ep_1') as [
    [string, string],
    [string, string],
    [string, string],
  ];
  expect(curl).toBe(
    [
      'curl -X PATCH',
      '-H "X-API-Key: $PILLOLE_KEY"',
      "-H 'Content-Type: application/json'",
      `-d '{"name":"o'\\''clock"}'`,
      "'https://api.example.com/api/webhooks/ep_1'",
    ].join(' \\\n  '),
  );
  expect(typescript).toContain(`body: JSON.stringify({"name":"o'clock"})`);
  expect(python).toContain('os.environ["PILLOLE_KEY"]');
  expect(callsOf(status!, '/api/status')[0]![1]).toBe(
    "curl \\\n  'https://api.example.com/api/status'",
  );
});
