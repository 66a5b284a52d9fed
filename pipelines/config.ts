import { type CommonConfig, readCommonConfig, readConfig } from '../lib/config.ts';

export interface PipelineConfig extends CommonConfig {
  readonly clickhouseUrl: string;
}

/** Reads the settings of a processor from the environment. */
export function readPipelineConfig(
  env: NodeJS.ProcessEnv,
  needsClickHouse: boolean,
): PipelineConfig {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    clickhouseUrl: needsClickHouse ? reader.text('CLICKHOUSE_URL') : '',
  }));
}
