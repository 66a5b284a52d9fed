import { readConfig } from '../../../lib/config/config.ts';

/** Reads the passwords of the two users; they come by environment, which other users cannot see. */
export function readClickhouseConfig(env: NodeJS.ProcessEnv = process.env) {
  return readConfig(env, (reader) => ({
    passwords: {
      default: reader.need('CLICKHOUSE_PASSWORD'),
      analyst: reader.need('CLICKHOUSE_ANALYST_PASSWORD'),
    },
  }));
}
