import { readLogConfig } from '../lib/config/common.ts';
import { readConfig } from '../lib/config/config.ts';
import { readEngineUrl } from '../lib/config/engine-url.ts';

/** Reads the settings of `npm run provision`. @throws ConfigError naming each fault */
export function readProvisionConfig(env: NodeJS.ProcessEnv) {
  return readConfig(env, (reader) => ({
    ...readLogConfig(reader),
    clickhouseUrl: readEngineUrl(reader, 'CLICKHOUSE_URL'),
    postgresUrl: readEngineUrl(reader, 'DATABASE_URL'),
    partitions: reader.get('PILLS_PARTITIONS'),
  }));
}
