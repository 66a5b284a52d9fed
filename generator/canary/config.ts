import { readFileSync } from 'node:fs';
import { type OpsConfig, readOpsConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';
import type { SettingName } from '../../lib/config/settings/catalogue.ts';
import { isSymbol, isTestSymbol } from '../../schemas/pill.ts';

export interface CanaryConfig extends OpsConfig {
  readonly ingestUrl: string;
  readonly apiUrl: string;
  readonly streamUrl: string;
  /** Generator credential, where ingest requires one. */
  readonly credential: string | undefined;
  /** API key of an Institutional account: a call a second is more than other tiers allow. */
  readonly key: string;
  readonly symbol: string;
  readonly everyMs: number;
  /** undefined = webhooks are not measured. */
  readonly webhook: WebhookReceiverConfig | undefined;
}

export interface WebhookReceiverConfig {
  readonly host: string;
  readonly port: number;
  /** Address under which the dispatcher reaches the receiver; undefined = host and port. */
  readonly url: string | undefined;
}

/** Reads the settings of the canary. @throws ConfigError */
export function readCanaryConfig(env: NodeJS.ProcessEnv = process.env): CanaryConfig {
  return readConfig(env, (reader) => {
    const secret = (name: SettingName, file: string | undefined) => {
      if (file === undefined || file === '') return undefined;
      try {
        return readFileSync(file, 'utf8').trim();
      } catch (error) {
        reader.fault(`${name} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
        return undefined;
      }
    };
    const symbol = reader.get('CANARY_SYMBOL');
    if (!isSymbol(symbol) || !isTestSymbol(symbol)) {
      reader.fault(`CANARY_SYMBOL must be a symbol that begins with TEST:, not "${symbol}"`);
    }
    const webhook = {
      host: reader.get('CANARY_WEBHOOK_HOST'),
      port: reader.get('CANARY_WEBHOOK_PORT'),
      url: reader.get('CANARY_WEBHOOK_URL'),
    };
    return {
      ...readOpsConfig(reader),
      ingestUrl: reader.need('INGEST_URL'),
      apiUrl: reader.need('PUBLIC_URL'),
      streamUrl: reader.need('STREAM_URL'),
      credential: secret('CANARY_CREDENTIAL_FILE', reader.get('CANARY_CREDENTIAL_FILE')),
      key: secret('CANARY_KEY_FILE', reader.need('CANARY_KEY_FILE')) ?? '',
      symbol,
      everyMs: reader.get('CANARY_EVERY_MS'),
      webhook: reader.get('CANARY_WEBHOOK') === 'yes' ? webhook : undefined,
    };
  });
}
