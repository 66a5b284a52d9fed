import type { AlertReceivers } from '../../../domain/accounts/operator-alerts.ts';
import type { ConfigReader } from '../../../lib/config/config.ts';

export interface AlertSettings extends AlertReceivers {
  readonly silenceS: number;
  readonly refusedPercent: number;
}

/** Reads the settings of alerts about generators; without a receiver there are none. */
export function readAlertSettings(reader: ConfigReader): AlertSettings {
  const webhookUrl = reader.optional('ALERT_WEBHOOK_URL');
  if (webhookUrl !== undefined && !/^https?:/.test(webhookUrl)) {
    reader.fault('ALERT_WEBHOOK_URL must be an http or https address');
  }
  return {
    address: reader.optional('ALERT_ADDRESS'),
    webhookUrl,
    silenceS: reader.integer('ALERT_SILENCE_S', { min: 1, max: 86_400, fallback: 300 }),
    refusedPercent: reader.integer('ALERT_REFUSED_PERCENT', { min: 1, max: 100, fallback: 10 }),
  };
}
