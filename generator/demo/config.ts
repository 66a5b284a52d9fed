import { type CommonConfig, readCommonConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';

export interface DemoConfig extends CommonConfig {
  /** `http`: as a customer's generator; `direct`: Avro to the log, bypassing the gateway. */
  readonly way: 'http' | 'direct';
  readonly ingestUrl: string;
  /** Generator credential, where ingest requires one. */
  readonly credential: string | undefined;
  readonly pillsPerS: number;
  readonly seed: number;
}

/** Reads the demo generator's settings. @throws ConfigError */
export function readDemoConfig(env: NodeJS.ProcessEnv = process.env): DemoConfig {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    way: reader.get('DEMO_WAY'),
    ingestUrl: reader.need('INGEST_URL'),
    credential: reader.get('INGEST_CREDENTIAL'),
    pillsPerS: reader.get('DEMO_PILLS_PER_S'),
    seed: reader.get('DEMO_SEED'),
  }));
}
