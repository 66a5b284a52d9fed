import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { compileSchema } from './validation.ts';

const schema = Type.Object(
  {
    days: Type.Integer({ minimum: 1 }),
    name: Type.Optional(Type.String({ pattern: '^[a-z]+$', description: 'Letters a to z' })),
  },
  { additionalProperties: false },
);

function faultsOf(httpPart: string, input: unknown): unknown {
  const check = compileSchema({ schema, method: 'GET', url: '/', httpPart });
  return (check(input) as { error?: { validation: unknown } }).error?.validation;
}

test.each(['querystring', 'params'])('a fault of a parameter (%s) names the parameter', (part) => {
  expect(faultsOf(part, { days: '0', more: '1' })).toEqual([
    { parameter: 'more', code: 'parameter_unknown', detail: 'Unknown here. Known: days, name.' },
    {
      parameter: 'days',
      code: 'out_of_range',
      detail: '`days` must be a whole number of at least 1.',
    },
  ]);
  expect(faultsOf(part, {})).toEqual([
    { parameter: 'days', code: 'missing', detail: '`days` is required.' },
  ]);
  expect(faultsOf(part, { days: ['1', '2'] })).toEqual([
    { parameter: 'days', code: 'parameter_repeated', detail: 'Give this parameter only once.' },
  ]);
});

test('a fault of a body points to the member', () => {
  expect(faultsOf('body', { days: 1, name: '9' })).toEqual([
    {
      pointer: '#/name',
      code: 'malformed',
      detail: '`name` is malformed. Expected: Letters a to z.',
    },
  ]);
  expect(faultsOf('body', { days: '1', more: 1 })).toEqual([
    { pointer: '#/more', code: 'unknown_field', detail: 'Unknown here. Known: days, name.' },
    {
      pointer: '#/days',
      code: 'not_an_integer',
      detail: '`days` must be a whole number of at least 1. Send it without quotes.',
    },
  ]);
  expect(faultsOf('body', {})).toEqual([
    { pointer: '#/days', code: 'missing_field', detail: '`days` is required.' },
  ]);
});

test.each([
  ['0,5', 'Write decimals with a point: 0.5.'],
  ['NaN', 'NaN and Infinity are not numbers here: send a finite one.'],
])('the number %s of a parameter is explained', (text, hint) => {
  const schema = Type.Object({ scale: Type.Number({ exclusiveMinimum: 0, maximum: 100 }) });
  const check = compileSchema({ schema, method: 'GET', url: '/', httpPart: 'querystring' });
  const { error } = check({ scale: text }) as never as { error: { validation: unknown } };
  const detail = `\`scale\` must be a number above 0, at most 100. ${hint}`;
  expect(error.validation).toEqual([{ parameter: 'scale', code: 'not_a_number', detail }]);
});

test('parameters in number form are numbers; a name of the client is cut', () => {
  expect(faultsOf('querystring', { days: '30' })).toBeUndefined();
  expect(faultsOf('querystring', { days: '1', ['x'.repeat(500)]: '' })).toMatchObject([
    { parameter: 'x'.repeat(64), code: 'parameter_unknown' },
  ]);
});
