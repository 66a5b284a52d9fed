import { provision } from './provision.ts';
import { readProvisionConfig } from './provision-config.ts';

/** `npm run provision`: creates topics, schemas and tables on the engines that the environment names. */
const config = readProvisionConfig(process.env);

const settings = await provision({
  ...config,
  kafkaBrokers: config.kafkaBrokers.join(','),
  settings: { partitions: config.partitions },
});
process.stdout.write(`${JSON.stringify(settings)}\n`);
