import { readConfig } from '../../lib/config/config.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';

/** Reads the settings of the operator's commands; without an address, the local stack is meant. */
export function readAdminConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(env, (reader) => ({
    databaseUrl:
      reader.get('DATABASE_URL') === undefined ? undefined : readEngineUrl(reader, 'DATABASE_URL'),
    namespace: reader.get('PILLOLE_NAMESPACE'),
    pepperFile: reader.get('KEY_PEPPER_FILE'),
  }));
}
