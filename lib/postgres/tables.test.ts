import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { type Database, schemaName } from './database.ts';
import { generateTables } from './generate-tables.ts';

let namespace: Namespace;
let db: Database;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

test('tables.ts equals the text generated from the migrated schema', async () => {
  const generated = await generateTables(db, schemaName(namespace.name));
  await expect(
    generated,
    'Regenerate it: npm run build && npx vitest run lib/postgres/tables.test.ts --update',
  ).toMatchFileSnapshot('tables.ts');
});
