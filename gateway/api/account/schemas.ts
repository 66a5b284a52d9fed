import { Type } from 'typebox';
import { SCOPES } from '../../../lib/access/access.ts';
import { TIER_NAMES } from '../../../lib/access/tiers.ts';
import { PASSWORD_CHARS_MAX } from '../../../lib/accounts/passwords.ts';

/** Members that several bodies share. */
export const STRICT = { additionalProperties: false } as const;

export const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\\.[A-Za-z0-9-]{1,63})+$',
});
/**
 * What the database or a terminal cannot take, or what makes a text look like another one: control
 * characters, lone surrogates, line and paragraph separators, bidirectional overrides.
 */
const UNSAFE = '\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff';
const CONTROLS = '\\u0000-\\u001f';
/** Of these, all but tab, line feed and carriage return. */
const CONTROLS_BUT_BREAKS = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f';
/** What is blank, and no control character: explicit, since \\s is another set in each language. */
const BLANKS = ' \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufeff';

/** One line that a caller chooses, e.g. a name. @param charsMax code points */
export const lineOf = (charsMax: number) =>
  Type.String({
    minLength: 1,
    maxLength: charsMax,
    // Each place has one way to match: linear in the length.
    pattern: `^[${BLANKS}]*[^${CONTROLS}${UNSAFE}${BLANKS}][^${CONTROLS}${UNSAFE}]*$`,
    description: 'One line, not blank, without control characters',
  });

/** A line that may be taken away: empty. */
export const lineOrNothing = (charsMax: number) => {
  const { pattern } = lineOf(charsMax) as { readonly pattern?: string };
  return Type.String({
    maxLength: charsMax,
    pattern: `^$|${pattern}`,
    description: 'One line without control characters; empty = none',
  });
};

/** Several lines that a caller chooses: as a line, with tabs and line breaks. */
export const textOf = (charsMax: number) =>
  Type.String({
    minLength: 1,
    maxLength: charsMax,
    pattern: `^[${BLANKS}\\t\\r\\n]*[^${CONTROLS}${UNSAFE}${BLANKS}][^${CONTROLS_BUT_BREAKS}${UNSAFE}]*$`,
    description: 'Not blank; of control characters tabs and line breaks alone',
  });

/** The rules of passwords are told by their faults; here only what bounds the work. */
export const Password = Type.String({ minLength: 1, maxLength: 4 * PASSWORD_CHARS_MAX });
export const MailToken = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });
export const TierName = Type.Enum([...TIER_NAMES]);
export const ScopeName = Type.Enum([...SCOPES]);
export const Time = Type.String({ description: 'RFC 3339' });
export const MaybeTime = Type.Union([Time, Type.Null()]);
/** An id of ours; one of another form can never exist, and is refused as a parameter. */
export const idOf = (prefix: string) => Type.String({ pattern: `^${prefix}_[a-z0-9]{12}$` });

export const Accepted = Type.Object({ status: Type.Literal('accepted') });
export const ACCEPTED = { status: 'accepted' } as const;
