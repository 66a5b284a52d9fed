import { describe, expect, test } from 'vitest';
import { readTokenInput } from './token.ts';

const SCHEME = 'aut_k3yq7v2bqm9c';

function tokenFor(aud: unknown): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'ES256', kid: 'a' })}.${part({ aud })}.c2ln`;
}

describe('the audience of a token that is not verified yet', () => {
  test.each([
    ['an object that cannot become text', [{ toString: 1, valueOf: 1 }]],
    ['an id inside of another list', [[SCHEME]]],
    ['an object', { aud: SCHEME }],
    ['a number', 7],
    ['null', null],
    ['nothing', undefined],
    ['two schemes', [SCHEME, 'aut_a3yq7v2bqm9c']],
    ['the same scheme twice', [SCHEME, SCHEME]],
  ])('%s: malformed', (_, aud) => {
    expect(readTokenInput(tokenFor(aud))).toMatchObject({ ok: false, fault: { check: 'claims' } });
  });

  test.each([
    ['as text', SCHEME],
    ['in a list, beside the audiences of others', ['https://api.example.com', 3, SCHEME]],
  ])('the id of a scheme %s', (_, aud) => {
    expect(readTokenInput(tokenFor(aud))).toMatchObject({ ok: true, value: { schemeId: SCHEME } });
  });
});
