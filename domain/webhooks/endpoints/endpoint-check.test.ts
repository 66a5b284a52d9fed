import { describe, expect, test } from 'vitest';
import { filterFaults, headerFaults } from './endpoint-check.ts';

const codesOf = (faults: readonly { pointer: string; code: string }[]) =>
  faults.map(({ pointer, code }) => [pointer, code]);

describe('headers', () => {
  test('custom headers may carry credentials', () => {
    const headers = {
      Authorization: 'Bearer abc',
      'x-desk': '',
      "!#$%&'*+": '1',
    };
    expect(headerFaults(headers)).toEqual([]);
  });

  test.each([
    ...['Host', 'webhook-id', 'Webhook-Signature', 'content-type', 'Content-Length', 'Connection'],
    ...['transfer-encoding', 'USER-AGENT', 'te', 'Upgrade', 'expect', 'keep-alive'],
    ...['proxy-authorization', 'Proxy-Connection', 'trailer', 'Cookie', 'Forwarded', 'Via'],
    ...['X-Forwarded-For', 'x-forwarded-host', 'X-Forwarded', 'X-Real-IP', 'Max-Forwards'],
  ])('%s is reserved', (name) => {
    expect(codesOf(headerFaults({ [name]: 'x' }))).toEqual([
      [`#/headers/${name}`, 'header_reserved'],
    ]);
  });

  test.each([
    ['', '#/headers/', 'header_name_malformed'],
    ['x y', '#/headers/x y', 'header_name_malformed'],
    ['x:y', '#/headers/x:y', 'header_name_malformed'],
    ['a/b~c', '#/headers/a~1b~0c', 'header_name_malformed'],
    ['é', '#/headers/é', 'header_name_malformed'],
    ['a'.repeat(65), `#/headers/${'a'.repeat(64)}`, 'header_name_malformed'],
  ])('the name %j is refused', (name, pointer, code) => {
    expect(codesOf(headerFaults({ [name]: 'x' }))).toEqual([[pointer, code]]);
  });

  test.each(['a\r\nHost: b', 'a\0', ' a', 'a\t', 'é', 'a'.repeat(1_025), '\u{1f600}'])(
    'the value %j is refused',
    (value) => {
      expect(codesOf(headerFaults({ 'x-a': value }))).toEqual([
        ['#/headers/x-a', 'header_value_malformed'],
      ]);
    },
  );

  test('a repeated name, and more than twenty headers, are refused', () => {
    expect(codesOf(headerFaults({ 'x-a': '1', 'X-A': '2' }))).toEqual([
      ['#/headers/X-A', 'header_repeated'],
    ]);
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`x-${at}`, '1']));
    expect(codesOf(headerFaults(many))).toEqual([['#/headers', 'too_many']]);
    const { 'x-20': _, ...twenty } = many;
    expect(headerFaults(twenty)).toEqual([]);
  });
});

test('a filter that no pill can pass is refused, with a pointer to each fault', () => {
  const faults = filterFaults({
    symbols: ['7203.T', 'lower'],
    states: ['open', 'a\0'],
    minSpread: 1,
    maxSpread: 0.5,
  });
  expect(codesOf(faults)).toEqual([
    ['#/symbols/1', 'symbol_malformed'],
    ['#/states/1', 'market_state_malformed'],
    ['#/max_spread', 'range_backwards'],
  ]);
  const one = { symbols: ['TEST:A'], states: ['取引中'], minSpread: 1, maxSpread: 1 };
  expect(filterFaults(one)).toEqual([]);
});
