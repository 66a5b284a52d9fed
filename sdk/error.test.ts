import { expect, test } from 'vitest';
import { PilloleError } from './error.ts';

test('JSON.stringify of an error has its message', () => {
  const error = new PilloleError({ code: 'network', message: 'No answer.', retry: 'after' });
  expect(JSON.parse(JSON.stringify({ error }))).toEqual({
    error: { code: 'network', message: 'No answer.', retry: 'after' },
  });
});
