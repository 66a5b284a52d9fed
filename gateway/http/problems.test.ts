import { describe, expect, test } from 'vitest';
import { isIdentityEncoding, isJsonType, isNdjsonType } from './media-type.ts';
import { PROBLEMS, type ProblemCode } from './problem-catalogue.ts';
import { problemAnswer } from './problems.ts';

describe('the catalogue', () => {
  test.each(Object.entries(PROBLEMS))('%s has a meaning and a remedy', (_code, type) => {
    expect(type.status).toSatisfy((s: number) => (s >= 400 && s < 500) || s === 503);
    for (const text of [type.title, type.meaning, type.remedy]) expect(text).toMatch(/^[A-Z].+/s);
    expect(type.meaning).toMatch(/\.$/);
    expect(type.remedy).toMatch(/\.$/);
  });

  test('an answer is a problem of RFC 9457, with members in the order of the contract', () => {
    const errors = [{ pointer: '#/id' }];
    const answer = problemAnswer('pill_invalid', { stored: 'no', errors });
    expect(answer.status).toBe(400);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    const { request_id, ...rest } = JSON.parse(answer.body);
    expect(JSON.stringify(rest)).toBe(
      '{"type":"/problems/pill-invalid","title":"The pill was refused","status":400,' +
        '"code":"pill_invalid","stored":"no","retry":"never","errors":[{"pointer":"#/id"}],' +
        `"remedy":${JSON.stringify(PROBLEMS.pill_invalid.remedy)}}`,
    );
    expect(request_id).toMatch(/^r_[0-9a-f]{16}$/);
  });

  test('a wait time is in the header too', () => {
    const answer = problemAnswer('overloaded' satisfies ProblemCode, { retry_after_s: 1 });
    expect(answer.headers['retry-after']).toBe('1');
    expect(JSON.parse(answer.body)).toMatchObject({ retry: 'after', retry_after_s: 1 });
  });
});

describe('media types', () => {
  test.each([
    ['application/json', true],
    ['Application/JSON', true],
    ['application/json; charset=utf-8', true],
    ['application/json;charset=UTF-8', true],
    ['application/json; charset="utf-8"', true],
    ['application/json; charset="UTF-8" ', true],
    ['application/json\t;x', false],
    ['application/json;', false],
    ['application/json; charset=utf-16', false],
    ['application/json; charset=utf-8; x=1', false],
    ['application/json, text/plain', false],
    ['application/jsonx', false],
    ['application/problem+json', false],
    ['text/json', false],
    ['application/x-ndjson', false],
    ['', false],
    [undefined, false],
  ])('%s is JSON: %s', (type, expected) => {
    expect(isJsonType(type)).toBe(expected);
  });

  test('NDJSON and encodings', () => {
    expect(isNdjsonType('application/x-ndjson; charset=utf-8')).toBe(true);
    expect(isNdjsonType('application/json')).toBe(false);
    expect(isIdentityEncoding(undefined)).toBe(true);
    expect(isIdentityEncoding('Identity')).toBe(true);
    expect(isIdentityEncoding('gzip')).toBe(false);
    expect(isIdentityEncoding('identity, gzip')).toBe(false);
  });
});
