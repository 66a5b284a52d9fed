import { readPepperPath } from '../../lib/access/pepper.ts';
import {
  type CommonConfig,
  type ConfigReader,
  readCommonConfig,
  readConfig,
} from '../../lib/config.ts';
import { readDnsServers } from '../../lib/webhooks/resolve.ts';
import { DISABLE_AFTER_S } from '../../lib/webhooks/schedule.ts';
import { readUrlPolicy, type UrlPolicy } from '../../lib/webhooks/url-policy.ts';

export interface WebhooksConfig extends CommonConfig {
  readonly clickhouseUrl: string;
  readonly databaseUrl: string;
  readonly pepperPath: string;
  readonly urls: UrlPolicy;
  readonly dnsServers: readonly string[] | undefined;
  /** Of one attempt. */
  readonly timeoutMs: number;
  /** An endpoint that fails for so long is disabled. */
  readonly disableAfterS: number;
}

/** Reads the settings of the dispatcher from the environment. */
export function readWebhooksConfig(env: NodeJS.ProcessEnv): WebhooksConfig {
  return readConfig(env, (reader: ConfigReader) => ({
    ...readCommonConfig(reader),
    clickhouseUrl: reader.text('CLICKHOUSE_URL'),
    databaseUrl: reader.text('DATABASE_URL'),
    pepperPath: readPepperPath(reader),
    urls: readUrlPolicy(reader),
    dnsServers: readDnsServers(reader),
    timeoutMs: reader.integer('WEBHOOK_TIMEOUT_MS', { min: 100, max: 15_000, fallback: 15_000 }),
    disableAfterS: reader.integer('WEBHOOK_DISABLE_AFTER_S', {
      ...{ min: 5, max: 30 * 86_400, fallback: DISABLE_AFTER_S },
    }),
  }));
}
