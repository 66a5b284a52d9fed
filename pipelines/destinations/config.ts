import { type Pepper, readPepperSetting } from '../../domain/access/pepper.ts';
import { type Egress, readEgress } from '../../domain/webhooks/send/egress.ts';
import { type CommonConfig, readCommonConfig } from '../../lib/config/common.ts';
import { type ConfigReader, readConfig } from '../../lib/config/config.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';

export interface DestinationsConfig extends CommonConfig {
  readonly databaseUrl: string;
  readonly pepper: Pepper;
  /** Where connections may lead, and how they leave: the rules of webhooks. */
  readonly egress: Egress;
}

/** Reads the settings of the process from the environment. */
export function readDestinationsConfig(env: NodeJS.ProcessEnv): DestinationsConfig {
  return readConfig(env, (reader: ConfigReader) => ({
    ...readCommonConfig(reader),
    databaseUrl: readEngineUrl(reader, 'DATABASE_URL'),
    pepper: readPepperSetting(reader),
    egress: readEgress(reader),
  }));
}
