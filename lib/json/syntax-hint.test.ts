import { expect, test } from 'vitest';
import { parseStrictJson } from './strict-json.ts';

test.each([
  ['{"confidence": 91,5}', 'with a point'],
  ['{"confidence": -0,5, "id": "a"}', 'with a point'],
  ['{"confidence": NaN}', 'no NaN'],
  ['{"confidence": nan}', 'no NaN'],
  ['{"confidence": -Infinity}', 'no NaN'],
  ['[Infinity]', 'no NaN'],
  ['{"a": None}', 'Write null'],
  ['{"a": True}', 'in lower case'],
  ["{'a': 1}", 'double quotes'],
  ['{"a": “1”}', 'double quotes'],
  ['{a: 1}', 'double quotes'],
  ['{"a": 1,}', 'Remove the comma'],
  ['[1,]', 'Remove the comma'],
  ['{"a": 1} // x', 'Remove the comment'],
  ['{"a": 01}', 'A number is written'],
  ['{"a": +1}', 'A number is written'],
  ['{"a": .5}', 'A number is written'],
  ['{"a": 1.}', 'A number is written'],
  ['{"a": 1', 'ends too early'],
  ['{"a": [1', 'ends too early'],
  ['{"a": "x', 'not closed'],
  ['{"a" 1}', 'colon'],
  ['{"a": 1 "b": 2}', 'comma'],
  ['{"a": "x\ny"}', 'A line break'],
  ['{"a": "\\x"}', 'no such escape'],
  ['{"a": 1}{"b": 2}', 'one document only'],
])('%s', (text, hint) => {
  const parsed = parseStrictJson(Buffer.from(text));
  const [fault] = parsed.ok ? [] : parsed.faults;
  expect(fault).toMatchObject({ pointer: '#', code: 'json_syntax' });
  expect(fault!.detail).toContain(hint);
  expect(fault!.detail).toMatch(/^Line \d+, column \d+: /);
  expect(fault!.detail).not.toMatch(/[a-z]Expected|Invalid[A-Z]|UnexpectedEnd/);
});
