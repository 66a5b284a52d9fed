import {
  type CommonConfig,
  ConfigError,
  isLoopback,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';
import { readCredentialFile } from '../../lib/generator-credentials.ts';

export interface IngestConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
  /** File of generator credentials; undefined leaves the server open. */
  readonly credentialsFile: string | undefined;
}

/**
 * Reads the settings of the ingest process.
 * @throws ConfigError also when other machines could reach a server that asks for no credential.
 */
export function readIngestConfig(env: NodeJS.ProcessEnv = process.env): IngestConfig {
  const config = readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    host: reader.text('INGEST_HOST', '127.0.0.1'),
    port: reader.integer('INGEST_PORT', { min: 0, max: 65_535, fallback: 8081 }),
    credentialsFile: reader.optional('INGEST_CREDENTIALS_FILE'),
    open: reader.choice('INGEST_OPEN', ['yes', 'no'], 'no'),
  }));
  if (config.credentialsFile !== undefined) {
    const read = readCredentialFile(config.credentialsFile);
    if (!read.ok) throw new ConfigError(`INGEST_CREDENTIALS_FILE: ${read.reason}`);
  } else if (!isLoopback(config.host) && config.open === 'no') {
    throw new ConfigError(
      `INGEST_HOST ${config.host} can be reached from other machines: name a file of generator ` +
        'credentials in INGEST_CREDENTIALS_FILE, or say INGEST_OPEN=yes.',
    );
  }
  return config;
}
