import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mayDo, PERMISSIONS, type Permission, ROLES } from './roles.ts';

test('the table of docs/institutional.md is the one that is enforced', () => {
  const document = readFileSync('docs/institutional.md', 'utf8').split('\n## ')[1]!;
  const lines = document.matchAll(/^\| `([\w:]+)` \|[^|]*\|((?:[^|]*\|){5})$/gm);
  const rows = [...lines].map(([, name, cells = '']) => {
    const marks = cells.split('|');
    return [name, ROLES.filter((_, index) => marks[index]?.trim() === '✓')] as const;
  });
  const enforced = Object.entries(PERMISSIONS).map(([name, roles]) => [
    name,
    ROLES.filter((role) => (roles as readonly string[]).includes(role)),
  ]);
  expect(rows).toEqual(enforced);
});

test('an owner may do everything', () => {
  const names = Object.keys(PERMISSIONS) as Permission[];
  expect(names.filter((name) => !mayDo('owner', name))).toEqual([]);
});
