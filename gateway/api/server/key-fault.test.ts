import { expect, test } from 'vitest';
import { newKey } from '../../../domain/access/key-format.ts';
import { keyProblem } from './key-fault.ts';

const key = newKey();
const PATH = '/api/pills/latest';

test.each([
  ['nothing', 'missing', PATH, {}, 'key_missing'],
  ['an ordinary parameter', 'missing', `${PATH}?symbol=7203.T`, {}, 'key_missing'],
  ['Bearer', 'missing', PATH, { authorization: `Bearer ${key}` }, 'key_scheme_wrong'],
  ['Basic', 'missing', PATH, { authorization: 'Basic eDp5' }, 'key_scheme_wrong'],
  ['Bearer in X-API-Key', 'malformed', PATH, { 'x-api-key': `bearer ${key}` }, 'key_scheme_wrong'],
  ['?api_key=', 'missing', `${PATH}?api_key=x`, {}, 'key_in_url'],
  ['?X-API-KEY=', 'missing', `${PATH}?X-API-KEY=x`, {}, 'key_in_url'],
  ['a key in any parameter', 'missing', `${PATH}?symbol=${key}`, {}, 'key_in_url'],
  ['an empty header', 'malformed', PATH, { 'x-api-key': '' }, 'key_missing'],
  ['half a key', 'malformed', PATH, { 'x-api-key': key.slice(0, 20) }, 'key_malformed'],
  ['unknown', 'unknown', PATH, { 'x-api-key': key }, 'key_invalid'],
  ['revoked', 'revoked', PATH, { 'x-api-key': key }, 'key_invalid'],
  ['expired', 'expired', PATH, { 'x-api-key': key }, 'key_invalid'],
] as const)('%s', (_name, fault, url, headers, code) => {
  expect(keyProblem(fault, { url, headers })).toBe(code);
});
