import { type CommonConfig, readCommonConfig } from '../lib/config/common.ts';
import { readConfig } from '../lib/config/config.ts';
import { readEngineUrl } from '../lib/config/engine-url.ts';
import type { Context } from '../lib/kafka/log-context.ts';

export interface PipelineConfig extends CommonConfig {
  readonly clickhouseUrl: string;
}

/** Dependencies of every processor. */
export type ProcessorContext = Context<PipelineConfig>;

/** Reads the settings of a processor from the environment. */
export function readPipelineConfig(
  env: NodeJS.ProcessEnv,
  needsClickHouse: boolean,
): PipelineConfig {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    clickhouseUrl: needsClickHouse ? readEngineUrl(reader, 'CLICKHOUSE_URL') : '',
  }));
}
