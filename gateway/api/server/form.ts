import type { FieldCode } from '../../../schemas/fault.ts';

/** Why a text does not match a pattern: the code, and the rule in words. */
export type Explained = readonly [code: FieldCode, detail: string];

const FORMS = new Map<string, (text: string) => Explained>();

/**
 * Gives a pattern of a schema its meaning in words: clients see the explanation, never the pattern.
 * @returns the pattern
 */
export function explained(pattern: string, explain: (text: string) => Explained): string {
  FORMS.set(pattern, explain);
  return pattern;
}

/** The same, if one sentence explains every text that does not match. */
export const ruled = (pattern: string, code: FieldCode, detail: string) =>
  explained(pattern, () => [code, detail]);

/** @returns undefined for a pattern that has no explanation; a test keeps routes from having one */
export const explanationOf = (pattern: string, text: string): Explained | undefined =>
  FORMS.get(pattern)?.(text);
