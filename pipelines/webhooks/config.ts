import { type Pepper, readPepperSetting } from '../../domain/access/pepper.ts';
import { type Egress, readEgress } from '../../domain/webhooks/send/egress.ts';
import { type CommonConfig, readCommonConfig } from '../../lib/config/common.ts';
import { type ConfigReader, readConfig } from '../../lib/config/config.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';

export interface WebhooksConfig extends CommonConfig {
  readonly clickhouseUrl: string;
  readonly databaseUrl: string;
  readonly pepper: Pepper;
  readonly egress: Egress;
  /** Bounds one attempt. */
  readonly timeoutMs: number;
  /** An endpoint that fails for this long is disabled. */
  readonly disableAfterS: number;
}

/** Reads the settings of the dispatcher from the environment. */
export function readWebhooksConfig(env: NodeJS.ProcessEnv): WebhooksConfig {
  return readConfig(env, (reader: ConfigReader) => ({
    ...readCommonConfig(reader),
    clickhouseUrl: readEngineUrl(reader, 'CLICKHOUSE_URL'),
    databaseUrl: readEngineUrl(reader, 'DATABASE_URL'),
    pepper: readPepperSetting(reader),
    egress: readEgress(reader),
    timeoutMs: reader.get('WEBHOOK_TIMEOUT_MS'),
    disableAfterS: reader.get('WEBHOOK_DISABLE_AFTER_S'),
  }));
}
