import { readPepperPath } from '../../lib/access/pepper.ts';
import {
  type CommonConfig,
  ConfigError,
  isLoopback,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';
import { type MailConfig, readMailConfig } from '../../lib/mail/config.ts';

export interface ApiConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
  readonly databaseUrl: string;
  readonly pepperPath: string;
  /** Proxies whose X-Forwarded-For is believed: addresses or networks; none by default. */
  readonly trustedProxies: readonly string[];
  readonly mail: MailConfig;
  /** Where customers find the services. */
  readonly addresses: { readonly api: string; readonly ingest: string; readonly stream: string };
}

/** Reads the settings of the API process. @throws ConfigError naming each fault. */
export function readApiConfig(env: NodeJS.ProcessEnv): ApiConfig {
  const config = readConfig(env, (reader) => {
    const port = reader.integer('API_PORT', { min: 0, max: 65_535, fallback: 8080 });
    const api = reader.text('PUBLIC_URL', `http://127.0.0.1:${port}`);
    return {
      ...readCommonConfig(reader),
      host: reader.text('API_HOST', '127.0.0.1'),
      port,
      databaseUrl: reader.text('DATABASE_URL'),
      pepperPath: readPepperPath(reader),
      trustedProxies: reader
        .text('TRUSTED_PROXIES', '')
        .split(/[\s,]+/)
        .filter(Boolean),
      mail: readMailConfig(reader),
      addresses: {
        api,
        ingest: reader.text('INGEST_URL', 'http://127.0.0.1:8081'),
        stream: reader.text('STREAM_URL', 'ws://127.0.0.1:8082'),
      },
    };
  });
  for (const [name, url] of Object.entries(config.addresses)) {
    if (!URL.canParse(url)) throw new ConfigError(`The address of ${name}, "${url}", is no URL.`);
  }
  // Keys and passwords travel in it.
  const { protocol, hostname } = new URL(config.addresses.api);
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    throw new ConfigError(`PUBLIC_URL ${config.addresses.api} must be https outside this machine.`);
  }
  return config;
}
