import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { exampleOf, integers, numbersOrNull, texts } from './example.ts';
import { orNull } from './schemas.ts';

test('the example of a schema is its own, or made of the examples of its parts', () => {
  const schema = Type.Object({
    ...texts({ id: 'a', at: 'b' }),
    list: Type.Array(Type.Object({ ...integers({ n: 1 }), ...numbersOrNull({ z: null }) })),
    kind: Type.Enum(['x', 'y']),
    one: orNull(Type.String({ examples: ['one'] })),
    none: orNull(Type.String()),
    own: Type.Object(texts({ a: 'b' }), { examples: [{ a: 'c' }] }),
    absent: Type.Optional(Type.String()),
  });
  expect(exampleOf(schema)).toEqual({
    id: 'a',
    at: 'b',
    list: [{ n: 1, z: null }],
    kind: 'x',
    one: 'one',
    none: null,
    own: { a: 'c' },
  });
});
