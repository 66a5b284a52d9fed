import { readFileSync } from 'node:fs';
import { readBind, readConfig } from '../../lib/config/config.ts';
import type { ProcessConfig } from '../../lib/run/run-process.ts';
import { isSymbol, isTestSymbol } from '../../schemas/pill.ts';

export interface CanaryConfig extends ProcessConfig {
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
    const secret = (name: string, isNeeded: boolean) => {
      const file = reader.optional(name);
      if (file === undefined) {
        if (isNeeded) reader.fault(`${name} is not set`);
        return undefined;
      }
      try {
        return readFileSync(file, 'utf8').trim();
      } catch (error) {
        reader.fault(`${name} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
        return undefined;
      }
    };
    const { host: metricsHost, open } = readBind(reader, 'METRICS');
    const symbol = reader.text('CANARY_SYMBOL', 'TEST:CANARY');
    if (!isSymbol(symbol) || !isTestSymbol(symbol)) {
      reader.fault(`CANARY_SYMBOL must be a symbol that begins with TEST:, not "${symbol}"`);
    }
    const hasWebhook = reader.choice('CANARY_WEBHOOK', ['yes', 'no'], 'no') === 'yes';
    return {
      logLevel: reader.choice('LOG_LEVEL', LOG_LEVELS, 'info'),
      metricsHost,
      metricsPort: reader.integer('METRICS_PORT', { min: 0, max: 65_535, fallback: 0 }),
      open,
      ingestUrl: reader.text('INGEST_URL'),
      apiUrl: reader.text('PUBLIC_URL'),
      streamUrl: reader.text('STREAM_URL'),
      credential: secret('CANARY_CREDENTIAL_FILE', false),
      key: secret('CANARY_KEY_FILE', true) ?? '',
      symbol,
      everyMs: reader.integer('CANARY_EVERY_MS', { min: 200, max: 60_000, fallback: 1_000 }),
      webhook: hasWebhook
        ? {
            host: reader.text('CANARY_WEBHOOK_HOST', '127.0.0.1'),
            port: reader.integer('CANARY_WEBHOOK_PORT', { min: 0, max: 65_535, fallback: 0 }),
            url: reader.optional('CANARY_WEBHOOK_URL'),
          }
        : undefined,
    };
  });
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
