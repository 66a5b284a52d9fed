import { type TProperties, type TSchema, Type } from 'typebox';
import { SCOPES } from '../../../domain/access/scopes.ts';
import { TIER_NAMES } from '../../../domain/access/tiers.ts';
import { PASSWORD_CHARS_MAX } from '../../../domain/accounts/passwords.ts';
import { hintForSymbol, SYMBOL_PATTERN } from '../../../schemas/pill.ts';
import { parseTimestamp } from '../../../schemas/timestamp.ts';
import { explained, ruled } from './form.ts';

// Schemas that several routes share.

export const STRICT = { additionalProperties: false } as const;

const SYMBOL = explained(SYMBOL_PATTERN, (text) => ['symbol_malformed', hintForSymbol(text)]);
const TIME_IN = explained(
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6})?(Z|\\+00:00)$',
  (text) => {
    const parsed = parseTimestamp(text);
    return parsed.ok ? ['timestamp_malformed', 'Send Z for UTC.'] : [parsed.code, parsed.detail];
  },
);

/** An object without other members. */
export const strict = <P extends TProperties>(properties: P) => Type.Object(properties, STRICT);

export const symbolOf = (description = 'Market symbol') =>
  Type.String({ pattern: SYMBOL, description, examples: ['7203.T'] });

/** A time in a query or body. */
export const timeOf = (description: string) =>
  Type.String({ pattern: TIME_IN, description, examples: ['2026-11-20T00:00:00Z'] });

/** Text that may be absent. */
export const optionalText = (description: string, options: object = {}) =>
  Type.Optional(Type.String({ ...options, description }));

export const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: ruled(
    '^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63})+$',
    'email_malformed',
    'Send an address such as name@example.com, in ASCII, of at most 254 characters.',
  ),
});
/** A whole number that may be absent. @param what it bounds, for the description */
export function whole(minimum: number, maximum: number, byDefault: number, what: string) {
  const description = `${what}; ${byDefault} by default`;
  return Type.Optional(Type.Integer({ minimum, maximum, default: byDefault, description }));
}

/** An optional choice between names. @param what ends in the default */
export const choice = <N extends string>(names: readonly N[], what: string) =>
  Type.Optional(Type.Enum([...names], { description: what }));

/**
 * Characters that a database or terminal rejects, or that make a text look like another: control
 * characters, lone surrogates, line and paragraph separators, bidirectional overrides.
 */
const UNSAFE = '\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff';
const CONTROLS = '\\u0000-\\u001f';
/** The same without tab, line feed and carriage return. */
const CONTROLS_BUT_BREAKS = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f';
/** Blanks that are not control characters: listed, because \\s differs between languages. */
const BLANKS = ' \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufeff';

const LINE = `^[${BLANKS}]*[^${CONTROLS}${UNSAFE}${BLANKS}][^${CONTROLS}${UNSAFE}]*$`;
const LINE_RULE = 'Send one line that is not blank, without control characters.';

/** One line of a caller's own text, e.g. a name. @param charsMax code points */
export const lineOf = (charsMax: number) =>
  Type.String({
    minLength: 1,
    maxLength: charsMax,
    // Every character matches in only one way, so matching is linear in the length.
    pattern: ruled(LINE, 'malformed', LINE_RULE),
    description: 'One line, not blank, without control characters',
  });

/** A line that may be empty, which removes it. */
export const lineOrNothing = (charsMax: number) =>
  Type.String({
    maxLength: charsMax,
    pattern: ruled(`^$|${LINE}`, 'malformed', LINE_RULE),
    description: 'One line without control characters; empty = none',
  });

/** Several lines of a caller's own text: like `lineOf`, with tabs and line breaks. */
export const textOf = (charsMax: number) =>
  Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: ruled(
      `^[${BLANKS}\\t\\r\\n]*[^${CONTROLS}${UNSAFE}${BLANKS}]` +
        `[^${CONTROLS_BUT_BREAKS}${UNSAFE}]*$`,
      'malformed',
      'Send text that is not blank, without control characters but tabs and line breaks.',
    ),
    description: 'Not blank; tabs and line breaks are the only control characters',
  });

/** Bounds only the work; the password rules report faults of their own. */
export const Password = Type.String({ minLength: 1, maxLength: 4 * PASSWORD_CHARS_MAX });
export const MailToken = Type.String({
  pattern: ruled('^[A-Za-z0-9_-]{43}$', 'malformed', 'Send the token of the mail unchanged.'),
});
export const TierName = Type.Enum([...TIER_NAMES]);
export const ScopeName = Type.Enum([...SCOPES]);
export const Time = Type.String({
  description: 'ISO 8601 in UTC, with six decimals',
  examples: ['2026-11-20T01:02:03.000000Z'],
});
export const MaybeTime = Type.Union([Time, Type.Null()], { examples: [null] });
/** An id of this service; an id of another form cannot exist and is refused as a parameter. */
export const idOf = (prefix: string) => {
  const detail = `An id of this kind is ${prefix}_ and 12 lower-case letters or digits.`;
  return Type.String({ pattern: ruled(`^${prefix}_[a-z0-9]{12}$`, 'malformed', detail) });
};

/** A value of a schema, or null. */
export const orNull = <T extends TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
/** How many rows a page has at most, or days a report. */
export const limitOf = (maximum: number, byDefault: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, default: byDefault }));
/** `before` of a page of rows: the id of the last row of the previous page. */
/** What to do about a page that is not of this request. */
export const PAGE_HINT =
  'This page does not belong to the request. Follow `next` unchanged, or begin without it.';
export const Before = Type.Optional(
  Type.String({
    pattern: ruled('^\\d{1,18}$', 'page_unknown', PAGE_HINT),
    description: 'As in `next` of the previous page',
  }),
);
export const Next = orNull(
  Type.String({ examples: [null], description: 'Path of the next page' }),
  'Path of the next page, to be requested as it is; null on the last page',
);

/** The name of a desk, in paths and bodies. */
export const DeskName = Type.String({
  pattern: ruled(
    '^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$',
    'malformed',
    'A desk is named by 1 to 63 lower-case letters, digits and hyphens, not at its ends.',
  ),
  description: 'Name of a desk',
});

/** The body of a rotation: how long the former object stays in force. */
export const overlapOf = (maximum: number, byDefault: number) => {
  const overlap = Type.Integer({ minimum: 0, maximum, default: byDefault });
  return Type.Object({ overlap_s: Type.Optional(overlap) }, STRICT);
};

export const Accepted = Type.Object({ status: Type.Literal('accepted') });
export const ACCEPTED = { status: 'accepted' } as const;
