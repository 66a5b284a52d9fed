import { expect, test } from 'vitest';
import { csvOf } from './csv.ts';

test('booleans are true and false, null is empty, lines end as in RFC 4180', () => {
  const rows = [
    { name: 'a,"b"', isFinal: true, z: null, more: 1 },
    { name: 'c', isFinal: false, z: 0.5, more: 2 },
  ];
  expect(csvOf({ columns: ['name', 'isFinal', 'z'], rows })).toBe(
    'name,isFinal,z\r\n"a,""b""",true,\r\nc,false,0.5\r\n',
  );
});
