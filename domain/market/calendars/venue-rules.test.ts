import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError } from '../../../lib/config/config.ts';
import { createVenueOf, NO_RULES, parseVenueRules, readVenueRules } from './venue-rules.ts';

const RULES = {
  exact: { '^NZ50': 'XNZE', '7203.T': 'XOSE' },
  prefix: { 'COIN:': 'ALWAYS', 'COIN:JP': 'XTKS' },
  suffix: { '-USDT': 'ALWAYS', '.TYO': 'XTKS', '.X.TYO': 'XHKG' },
};

test.each([
  ['^NZ50', 'XNZE'],
  ['COIN:BTC', 'ALWAYS'],
  ['COIN:JPX', 'XTKS'], // the longest prefix
  ['BTC-USDT', 'ALWAYS'],
  ['7203.TYO', 'XTKS'],
  ['7203.X.TYO', 'XHKG'], // the longest suffix
  ['0700.HK', 'XHKG'], // built-in form
  ['USD/JPY', 'FX'],
  ['TEST:X-USDT', undefined],
  ['AAPL', undefined],
])('%s trades at %s', (symbol, place) => {
  const { '7203.T': _, ...exact } = RULES.exact;
  const parsed = parseVenueRules(JSON.stringify({ ...RULES, exact }));
  if (!parsed.ok) throw new Error(parsed.faults.join(' '));
  expect(createVenueOf(parsed.rules)(symbol)).toBe(place);
});

test('without rules, the built-in forms apply', () => {
  expect(createVenueOf(NO_RULES)('7203.T')).toBe('XTKS');
});

test.each([
  ['an unknown venue', JSON.stringify(RULES), /exact "7203.T": unknown venue\. Known venues: FX, /],
  ['an unknown kind', '{"infix":{}}', /infix: unknown\. Known kinds: exact, prefix, suffix\./],
  ['a form that no symbol has', '{"suffix":{".t":"XTKS"}}', /suffix "\.t": no symbol has/],
  ['an empty form', '{"prefix":{"":"XTKS"}}', /prefix "": no symbol has/],
  ['test symbols', '{"prefix":{"TEST:A":"XTKS"}}', /TEST: is reserved/],
  ['a list', '[]', /must be an object of rules/],
  ['a list of venues', '{"exact":[]}', /exact: must be an object of venues/],
  ['not JSON', '{"exact":', /\S/],
  ['a name twice', '{"exact":{"A":"FX","A":"FX"}}', /\S/],
])('%s is refused, and the message names the location', (_, text, fault) => {
  const parsed = parseVenueRules(text);
  expect(parsed.ok).toBe(false);
  expect(parsed.ok || parsed.faults.join(' ')).toMatch(fault);
});

test('faults in the file name its path', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-venues-'));
  const file = path.join(folder, 'venues.json');
  expect(() => readVenueRules(file)).toThrow(ConfigError);
  writeFileSync(file, '{"exact":{"A":"NOWHERE"}}');
  expect(() => readVenueRules(file)).toThrow(/VENUE_RULES .*venues\.json is faulty: exact "A"/);
  writeFileSync(file, '{"exact":{"A":"ALWAYS"}}');
  expect(readVenueRules(file)).toEqual({ ...NO_RULES, exact: { A: 'ALWAYS' } });
  expect(readVenueRules(undefined)).toBe(NO_RULES);
});
