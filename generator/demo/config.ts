import { type CommonConfig, readCommonConfig, readConfig } from '../../lib/config.ts';

export interface DemoConfig extends CommonConfig {
  readonly ingestUrl: string;
  /** Generator credential, where ingest asks for one. */
  readonly credential: string | undefined;
  readonly pillsPerS: number;
  readonly seed: number;
}

/** Reads the demo generator's settings. @throws ConfigError */
export function readDemoConfig(env: NodeJS.ProcessEnv = process.env): DemoConfig {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    ingestUrl: reader.text('INGEST_URL'),
    credential: reader.optional('INGEST_CREDENTIAL'),
    pillsPerS: reader.integer('DEMO_PILLS_PER_S', { min: 1, max: 5_000, fallback: 5 }),
    seed: reader.integer('DEMO_SEED', { min: 0, max: 2 ** 32 - 1, fallback: 1 }),
  }));
}
