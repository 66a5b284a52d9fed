import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTokens, type Text } from './tokens.ts';

/** The tokens of a text, and how many characters were looked at for them. */
function read(text: string) {
  let work = 0;
  const counting: Text = {
    length: text.length,
    charCodeAt(at) {
      work += 1;
      return text.charCodeAt(at);
    },
    indexOf(wanted, from = 0) {
      const found = text.indexOf(wanted, from);
      work += (found < 0 ? text.length : found) - from;
      return found;
    },
    slice(from = 0, to = text.length) {
      work += to - from;
      return text.slice(from, to);
    },
  };
  const token = readTokens(counting);
  const tokens: string[] = [];
  try {
    while (token.next()) tokens.push(text.slice(token.at, token.end));
  } catch (error) {
    tokens.push((error as Error).message);
  }
  return { tokens, work };
}

test.each([
  ['a /* b /* c */ d */ e', ['a', 'e']],
  ['a /*/ b */ c', ['a', 'c']],
  ['/* a', []],
  ['/* /* */ a', []],
  ['a -- b\nc', ['a', 'c']],
  ['a #! b\nc # d', ['a', 'c']],
  ["'it''s' 'a\\'b'", ["'it''s'", "'a\\'b'"]],
  ["a 'b c", ['a', "'b c"]],
  ["$$ a ' $$ b", ["$$ a ' $$", 'b']],
  ['$t$ a $$ $t$ b', ['$t$ a $$ $t$', 'b']],
  ['$a$a$', ['$a$a$']],
  ['a$b$, file, x$b$', ['a$b$', ',', 'file', ',', 'x$b$']],
  ['$a$ b', ['$a$', 'b']],
  ['1e5 t1.`c d`', ['1e5', 't1', '.', '`c d`']],
  ['日\u3000a', ['日', 'a']],
])('tokens of %j', (text, tokens) => {
  expect(read(text).tokens).toEqual(tokens);
});

describe('the work is proportional to the length', () => {
  // 17 searches for the ends of heredocs, and a few looks at each character.
  const perCharacter = 26;
  const tags = Array.from({ length: 4_000 }, (_, i) => `$${i}$ `).join('');

  test.each([
    ...[
      "'",
      '"',
      '`',
      "\\'",
      '\'"`',
      '/*',
      '*/',
      '/*/',
      '-- ',
      '#!',
      '$',
      '$$ $',
      '$a',
      '( ',
      '[{(',
    ],
    ...['日本', '\u2028', "\\'$$/*", 'FORMAT ', ' ', '1.'],
  ])('%j, repeated', (part) => {
    const text = part.repeat(20_000);
    expect(read(text).work).toBeLessThan(perCharacter * text.length);
    expect(read(`x${text}`).work).toBeLessThan(perCharacter * text.length);
  });

  test('tags of heredocs that are not closed', () => {
    const { tokens, work } = read(tags);
    expect(work).toBeLessThan(perCharacter * tags.length);
    expect(tokens.at(-1)).toContain('heredocs are not closed');
  });

  test('any mixture of quotes, comments, heredocs and brackets', () => {
    const parts = [
      "'",
      '"',
      '`',
      '\\',
      '/*',
      '*/',
      '--',
      '\n',
      '$',
      '$a$',
      '$$',
      '(',
      ')',
      ' ',
      'a',
      '日',
    ];
    const pieces = fc.array(fc.constantFrom(...parts), { maxLength: 12 });
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 500 }), (piece, count) => {
        const text = piece.join('').repeat(count);
        expect(read(text).work).toBeLessThanOrEqual(perCharacter * (text.length + 1));
      }),
      { numRuns: 300 },
    );
  });
});
