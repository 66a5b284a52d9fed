import { readPepperPath } from '../../domain/access/pepper.ts';
import { DISABLE_AFTER_S } from '../../domain/webhooks/deliveries/retry-schedule.ts';
import { type Egress, readEgress } from '../../domain/webhooks/send/egress.ts';
import {
  type CommonConfig,
  type ConfigReader,
  readCommonConfig,
  readConfig,
} from '../../lib/config/config.ts';

export interface WebhooksConfig extends CommonConfig {
  readonly clickhouseUrl: string;
  readonly databaseUrl: string;
  readonly pepperPath: string;
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
    clickhouseUrl: reader.text('CLICKHOUSE_URL'),
    databaseUrl: reader.text('DATABASE_URL'),
    pepperPath: readPepperPath(reader),
    egress: readEgress(reader),
    timeoutMs: reader.integer('WEBHOOK_TIMEOUT_MS', { min: 100, max: 15_000, fallback: 15_000 }),
    disableAfterS: reader.integer('WEBHOOK_DISABLE_AFTER_S', {
      min: 5,
      max: 30 * 86_400,
      fallback: DISABLE_AFTER_S,
    }),
  }));
}
