import { type CommonConfig, readCommonConfig, readConfig } from '../../lib/config/config.ts';

export interface DemoConfig extends CommonConfig {
  /** `http`: as a customer's generator; `direct`: Avro to the log, bypassing the gateway. */
  readonly way: 'http' | 'direct';
  readonly ingestUrl: string;
  /** Generator credential, where ingest requires one. */
  readonly credential: string | undefined;
  readonly pillsPerS: number;
  readonly seed: number;
}

/** Default rate, in pills per second. */
export const PILLS_PER_S = 10;
export const PILLS_PER_S_MAX = 5_000;

/** Reads the demo generator's settings. @throws ConfigError */
export function readDemoConfig(env: NodeJS.ProcessEnv = process.env): DemoConfig {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    way: reader.choice('DEMO_WAY', ['http', 'direct'], 'http'),
    ingestUrl: reader.text('INGEST_URL'),
    credential: reader.optional('INGEST_CREDENTIAL'),
    pillsPerS: reader.integer('DEMO_PILLS_PER_S', {
      min: 1,
      max: PILLS_PER_S_MAX,
      fallback: PILLS_PER_S,
    }),
    seed: reader.integer('DEMO_SEED', { min: 0, max: 2 ** 32 - 1, fallback: 1 }),
  }));
}
