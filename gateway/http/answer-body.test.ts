import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { answerOf, bodyOf, exampleOf, fromBody } from './answer-body.ts';

const Key = Type.Object({
  id: Type.String({ examples: ['key_1'] }),
  status: Type.Enum(['live', 'ended']),
  created_at: Type.String({ examples: ['2026-11-20T01:02:03.000000Z'] }),
  ended_at: Type.Union([Type.String(), Type.Null()]),
});

test.each([
  ['names in camel case', { createdAt: new Date(0), endedAt: undefined }],
  ['the names of the schema', { created_at: '1970-01-01T00:00:00.000000Z', ended_at: null }],
])('a body has exactly the members of its schema, from a record with %s', (_, times) => {
  const record = { id: 'key_2', status: 'live', secret: 's', ...times };
  expect(bodyOf(Key, record as never)).toEqual({
    id: 'key_2',
    status: 'live',
    created_at: '1970-01-01T00:00:00.000000Z',
    ended_at: null,
  });
});

test('an example follows from the examples of the members', () => {
  const Page = Type.Object({
    data: Type.Array(Key),
    count: Type.Integer({ examples: [7] }),
    limit: Type.Union([Type.Integer({ examples: [5] }), Type.Null()]),
    since: Type.Union([Key.properties.created_at, Type.Null()], { examples: [null] }),
    more: Type.Boolean(),
    kind: Type.Literal('page'),
  });
  const key = { id: 'key_1', status: 'live', created_at: '2026-11-20T01:02:03.000000Z' };
  const page = { count: 7, limit: 5, since: null, more: false, kind: 'page' };
  const expected = { ...page, data: [{ ...key, ended_at: null }] };
  expect(exampleOf(Page)).toEqual(expected);
  expect(answerOf('A page.', Page, { count: 8 }).example).toEqual({ ...expected, count: 8 });
  const nested = answerOf('Keys.', Type.Object({ key: Key }), { key: { status: 'ended' } });
  expect(nested.example).toEqual({ key: { ...key, status: 'ended', ended_at: null } });
});

test('a text without an example is an error, because no text fits every member', () => {
  expect(() => exampleOf(Type.Object({ name: Type.String() }))).toThrow('no example');
});

test('the members of a body get their names in code, and null becomes undefined', () => {
  const body = { rate_per_s: 5, min_spread: null, url: 'https://example.com' };
  expect(fromBody(body)).toStrictEqual({
    ratePerS: 5,
    minSpread: undefined,
    url: 'https://example.com',
  });
});
