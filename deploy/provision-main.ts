import { readCommonConfig, readConfig } from '../lib/config/config.ts';
import { provision } from './provision.ts';

/** `npm run provision`: creates topics, schemas and tables on the engines that the environment names. */
const config = readConfig(process.env, (reader) => ({
  ...readCommonConfig(reader),
  clickhouseUrl: reader.text('CLICKHOUSE_URL'),
  postgresUrl: reader.text('DATABASE_URL'),
  partitions: reader.integer('PILLS_PARTITIONS', { min: 1, max: 1_000, fallback: 12 }),
}));

const settings = await provision({
  ...config,
  kafkaBrokers: config.kafkaBrokers.join(','),
  settings: { partitions: config.partitions },
});
process.stdout.write(`${JSON.stringify(settings)}\n`);
