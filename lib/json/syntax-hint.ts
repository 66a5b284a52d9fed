import type { ParseErrorCode } from 'jsonc-parser';

/** Characters on either side of a fault that are looked at. */
const AROUND = 40;

const NUMBER_FORM =
  'A number is written as 0.5, -2 or 1e3: without +, leading zeros or a bare point.';

/** Usual mistakes, by the text before the fault and from it on. The first that matches counts. */
const MISTAKES: readonly (readonly [before: RegExp, from: RegExp, hint: string])[] = [
  [
    /[+-]?$/,
    /^[+-]?(?:nan|inf(?:inity)?)\b/i,
    'JSON has no NaN and no Infinity: send a finite number.',
  ],
  [/\d,$/, /^\d/, 'Decimals are written with a point, not with a comma, e.g. 91.5.'],
  [/[:[,]\s*$/, /^(?:none|undefined)\b/i, 'Write null, true or false; JSON has no other words.'],
  [/[:[,]\s*$/, /^(?:true|false|null)\b/i, 'Write null, true and false in lower case.'],
  [/$/, /^['‘’“”`]/, 'Put names and texts in double quotes: ".'],
  [/,\s*$/, /^[}\]]/, 'Remove the comma before the closing bracket.'],
  [/$/, /^\/[/*]/, 'Remove the comment; JSON has none.'],
  [/(?:^|[:[,\s])[+-]?$/, /^[+.]|^-?0\d|^-?\d+\.(?!\d)/, NUMBER_FORM],
  [/(?:^|[:[,\s])-?0$/, /^\d/, NUMBER_FORM],
  [/\d$/, /^\.(?!\d)/, NUMBER_FORM],
];

/** The rules of JSON by the error of its parser, in words. */
const RULES: Readonly<Record<ParseErrorCode, string>> = {
  1: 'This is no value of JSON. Texts need double quotes.',
  2: NUMBER_FORM,
  3: 'A name in double quotes is expected here.',
  4: 'A value is expected here.',
  5: 'A colon is expected here, between name and value.',
  6: 'A comma is expected here.',
  7: 'The object is not closed: } is missing.',
  8: 'The array is not closed: ] is missing.',
  9: 'The document ends before this. Send one document only.',
  10: 'Remove the comment; JSON has none.',
  11: 'Remove the comment; JSON has none.',
  12: 'The text is not closed: " is missing. A line break in it is written as \\n.',
  13: NUMBER_FORM,
  14: 'An escape \\u must have four hexadecimal digits.',
  15: 'There is no such escape. Write a backslash as \\\\.',
  16: 'Line breaks and other control characters in texts are written as escapes, e.g. \\n.',
};

/** What is wrong with a text that is not JSON, and how to write it. @param at of the first fault */
export function syntaxHint(code: ParseErrorCode, text: string, at: number): string {
  const before = text.slice(Math.max(0, at - AROUND), at);
  const from = text.slice(at, at + AROUND);
  const known = MISTAKES.find(([left, right]) => left.test(before) && right.test(from));
  if (known !== undefined) return known[2];
  return text.slice(at).trim() === '' && code !== 12
    ? 'The document ends too early: a bracket or a quote is not closed.'
    : RULES[code];
}
