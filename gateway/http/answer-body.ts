import type { TObject, TSchema } from 'typebox';
import { formatTimestamp } from '../../schemas/timestamp.ts';

/** `period_end` → `periodEnd`. */
type Camel<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail> & string>}`
  : Name;

type NameOf<S extends TObject> = keyof S['properties'] & string;

/**
 * The body of an answer: exactly the members of its schema, from a record that has them under the
 * same names or in camel case. Times become RFC 3339 text, and undefined becomes null.
 */
export function bodyOf<S extends TObject>(
  schema: S,
  record:
    | { readonly [Name in NameOf<S>]: unknown }
    | { readonly [Name in NameOf<S> as Camel<Name> & string]: unknown },
): Record<string, unknown> {
  const values: Readonly<Record<string, unknown>> = record;
  const members = Object.keys(schema.properties).map((name) => {
    const value = values[name in values ? name : camelOf(name)];
    return [name, value instanceof Date ? timeText(value) : (value ?? null)];
  });
  return Object.fromEntries(members);
}

/** A time as all answers show it: six decimals and `Z`. */
export function timeText(date: Date): string {
  return formatTimestamp(date.getTime() * 1_000);
}

/** The members of a request's body under their names in code; undefined instead of null. */
export function fromBody<B extends object>(body: B) {
  const members = Object.entries(body).map(([name, value]) => [camelOf(name), value ?? undefined]);
  return Object.fromEntries(members) as {
    [Name in keyof B as Camel<Name> & string]: null extends B[Name]
      ? Exclude<B[Name], null> | undefined
      : B[Name];
  };
}

function camelOf(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A successful answer as the reference shows it. @param given members that the example changes */
export function answerOf(description: string, schema: TSchema, given?: object) {
  return { description, schema, example: exampleOf(schema, given) };
}

interface JsonSchema {
  readonly type?: string;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly items?: TSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

/** The first example of a schema; by default the examples of its members, null, false or 0. */
export function exampleOf(schema: TSchema, given?: unknown): unknown {
  const of: JsonSchema = schema;
  if (of.properties !== undefined) {
    const changes = (given ?? of.examples?.[0] ?? {}) as Readonly<Record<string, unknown>>;
    const members = Object.entries(of.properties);
    return Object.fromEntries(members.map(([name, one]) => [name, exampleOf(one, changes[name])]));
  }
  if (given !== undefined) return given;
  if (of.examples !== undefined) return of.examples[0];
  const value = of.const ?? of.enum?.[0] ?? of.anyOf?.[0]?.examples?.[0];
  if (value !== undefined) return value;
  if (of.items !== undefined) return [exampleOf(of.items)];
  if (of.anyOf !== undefined) return null;
  if (of.type === 'string') throw new Error(`A text has no example: ${JSON.stringify(schema)}`);
  return of.type === 'boolean' ? false : 0;
}
