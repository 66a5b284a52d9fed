import { randomUUID } from 'node:crypto';
import { migratePostgres } from '../deploy/provision.ts';
import { testEngine, testPepperFile } from './engine-addresses.ts';
import type { Namespace } from './namespace.ts';

/** The part of a namespace in PostgreSQL. */
export interface DatabaseNamespace extends Pick<Namespace, 'name' | 'env'> {
  readonly engines: Pick<Namespace['engines'], 'postgresUrl' | 'pepperFile'>;
}

/** Creates a namespace in PostgreSQL only, for tests that use no other engine. */
export async function createDatabaseNamespace(): Promise<DatabaseNamespace> {
  const name = `t${randomUUID().slice(0, 8)}`;
  const postgresUrl = testEngine('postgres');
  const pepperFile = testPepperFile();
  await migratePostgres({ postgresUrl, namespace: name });
  return {
    name,
    engines: { postgresUrl, pepperFile },
    env: { DATABASE_URL: postgresUrl, KEY_PEPPER_FILE: pepperFile, PILLOLE_NAMESPACE: name },
  };
}
