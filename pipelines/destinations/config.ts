import { readPepperPath } from '../../domain/access/pepper.ts';
import { type Egress, readEgress } from '../../domain/webhooks/send/egress.ts';
import {
  type CommonConfig,
  type ConfigReader,
  readCommonConfig,
  readConfig,
} from '../../lib/config/config.ts';

export interface DestinationsConfig extends CommonConfig {
  readonly databaseUrl: string;
  readonly pepperPath: string;
  /** Where connections may lead, and how they leave: the rules of webhooks. */
  readonly egress: Egress;
}

/** Reads the settings of the process from the environment. */
export function readDestinationsConfig(env: NodeJS.ProcessEnv): DestinationsConfig {
  return readConfig(env, (reader: ConfigReader) => ({
    ...readCommonConfig(reader),
    databaseUrl: reader.text('DATABASE_URL'),
    pepperPath: readPepperPath(reader),
    egress: readEgress(reader),
  }));
}
