import {
  type CommonConfig,
  ConfigError,
  isLoopback,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';

export interface StreamConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
}

/** Reads the settings of the stream process. */
export function readStreamConfig(env: NodeJS.ProcessEnv): StreamConfig {
  const config = readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    host: reader.text('STREAM_HOST', '127.0.0.1'),
    port: reader.integer('STREAM_PORT', { min: 0, max: 65_535, fallback: 8082 }),
  }));
  if (isLoopback(config.host)) return config;
  throw new ConfigError(
    `STREAM_HOST is ${config.host}, but until accounts exist the stream is open to all who reach ` +
      'it, so it binds to this machine alone: set STREAM_HOST=127.0.0.1.',
  );
}
