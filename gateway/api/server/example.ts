import { type Static, type TSchema, Type } from 'typebox';

// Schemas of answers carry an example of each part, so that an answer has one definition.

const each =
  <V, T extends TSchema>(make: (options: { readonly examples: readonly V[] }) => T) =>
  <N extends string>(examples: Readonly<Record<N, V>>) =>
    Object.fromEntries(
      Object.entries<V>(examples).map(([name, example]) => [name, make({ examples: [example] })]),
    ) as Record<N, T>;

/** Schemas of an object's members, by name, each with its example. */
export const texts = each<string, ReturnType<typeof Type.String>>(Type.String);
export const numbers = each<number, ReturnType<typeof Type.Number>>(Type.Number);
export const integers = each<number, ReturnType<typeof Type.Integer>>(Type.Integer);
export const numbersOrNull = each((options: { readonly examples: readonly (number | null)[] }) =>
  Type.Union([Type.Number(), Type.Null()], options),
);

interface AnySchema {
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly type?: string;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly items?: AnySchema;
  readonly anyOf?: readonly AnySchema[];
}

/** The example of a schema: its own, or made of its parts'; a part without one is left out. */
export function exampleOf<T extends TSchema>(schema: T): Static<T> {
  return findExample(schema as AnySchema) as Static<T>;
}

function findExample(schema: AnySchema): unknown {
  const { examples, type, properties, items, anyOf } = schema;
  if (examples !== undefined) return examples[0];
  if (properties !== undefined) {
    const members = Object.entries(properties).map(([name, part]) => [name, findExample(part)]);
    return Object.fromEntries(members.filter(([, value]) => value !== undefined));
  }
  if (items !== undefined) return [findExample(items)];
  if (anyOf !== undefined) return anyOf.map(findExample).find((value) => value !== undefined);
  return type === 'null' ? null : (schema.const ?? schema.enum?.[0]);
}
