import { expect, test } from 'vitest';
import { SCOPES } from '../../domain/access/scopes.ts';
import { SCOPES as SHOWN } from './page/app/settings/key-body.ts';

test('the dialog that creates a key offers every scope', () => {
  expect(SHOWN.map(([scope]) => scope).sort()).toEqual([...SCOPES].sort());
});
