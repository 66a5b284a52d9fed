import {
  type CommonConfig,
  ConfigError,
  isLoopback,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';

export interface ApiConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
}

/** Reads the settings of the API process. @throws ConfigError naming each fault. */
export function readApiConfig(env: NodeJS.ProcessEnv): ApiConfig {
  const config = readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    host: reader.text('API_HOST', '127.0.0.1'),
    port: reader.integer('API_PORT', { min: 0, max: 65_535, fallback: 8080 }),
  }));
  if (!isLoopback(config.host)) {
    throw new ConfigError(
      `API_HOST is ${config.host}, but the API has no accounts yet and is open to whoever reaches ` +
        'it: bind it to a loopback address (127.0.0.1).',
    );
  }
  return config;
}
