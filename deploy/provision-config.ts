import { readCommonConfig, readConfig } from '../lib/config/config.ts';

/** Reads the settings of `npm run provision`. @throws ConfigError naming each fault */
export function readProvisionConfig(env: NodeJS.ProcessEnv) {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    clickhouseUrl: reader.text('CLICKHOUSE_URL'),
    postgresUrl: reader.text('DATABASE_URL'),
    partitions: reader.integer('PILLS_PARTITIONS', { min: 1, max: 1_000, fallback: 12 }),
  }));
}
