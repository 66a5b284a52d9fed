import { answerCommandLine } from '../lib/config/command-line.ts';
import { ConfigError } from '../lib/config/config.ts';
import { connectionHint } from '../lib/config/connection-hint.ts';
import { unknownSettings } from '../lib/config/unknown-settings.ts';
import { provision } from './provision.ts';
import { readProvisionConfig } from './provision-config.ts';

/** `npm run provision`: creates topics, schemas and tables on the engines that the environment names. */
answerCommandLine('provision', readProvisionConfig);
for (const warning of unknownSettings(process.env)) process.stderr.write(`Warning: ${warning}.\n`);
const { kafka, partitions, ...config } = readOrExit();
const { brokers, ...kafkaSecurity } = kafka;
const engines = { ...config, kafkaBrokers: brokers.join(','), kafkaSecurity };
try {
  const settings = await provision({ ...engines, settings: { partitions } });
  process.stdout.write(`${JSON.stringify(settings)}\n`);
} catch (error) {
  const { message } = error as Error;
  const text = [message, connectionHint(error as Error)].filter(Boolean).join(' ');
  process.stderr.write(`Provisioning failed: ${text}\n`);
  process.exit(1); // clients of the other engines may still be retrying
}

function readOrExit() {
  try {
    return readProvisionConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`provision cannot start: ${error.message}\n`);
    process.exit(2);
  }
}
