import type { AlertReceivers } from '../../../domain/accounts/operator-alerts.ts';
import type { ConfigReader } from '../../../lib/config/config.ts';

export interface AlertSettings extends AlertReceivers {
  readonly silenceS: number;
  readonly refusedPercent: number;
}

/** Reads the settings of alerts about generators; without a receiver there are none. */
export function readAlertSettings(reader: ConfigReader): AlertSettings {
  return {
    address: reader.get('ALERT_ADDRESS'),
    webhookUrl: reader.get('ALERT_WEBHOOK_URL'),
    silenceS: reader.get('ALERT_SILENCE_S'),
    refusedPercent: reader.get('ALERT_REFUSED_PERCENT'),
  };
}
