import { readPepperPath } from '../../lib/access/pepper.ts';
import { type CommonConfig, readCommonConfig, readConfig } from '../../lib/config.ts';

export interface StreamConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
  readonly databaseUrl: string;
  readonly pepperPath: string;
  /** Origins of browser pages that may connect, beside those of this machine. */
  readonly origins: readonly string[];
}

/**
 * Reads the settings of the stream process. Allow-lists of keys are compared with the address that
 * connects: behind a proxy that is the proxy's.
 */
export function readStreamConfig(env: NodeJS.ProcessEnv): StreamConfig {
  return readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    host: reader.text('STREAM_HOST', '127.0.0.1'),
    port: reader.integer('STREAM_PORT', { min: 0, max: 65_535, fallback: 8082 }),
    databaseUrl: reader.text('DATABASE_URL'),
    pepperPath: readPepperPath(reader),
    origins: reader
      .text('STREAM_ORIGINS', '')
      .split(/[\s,]+/)
      .filter(Boolean),
  }));
}
