import os from 'node:os';
import path from 'node:path';
import { type CommonConfig, readCommonConfig, readConfig } from '../../lib/config.ts';

export interface DedicatedConfig extends CommonConfig {
  readonly databaseUrl: string;
  /** Address that the processes listen on. */
  readonly host: string;
  /** Where it is kept which processes run; of this supervisor alone. */
  readonly runFolder: string;
  /** Priority of the processes, where the system allows it: -20 (first) to 19 (last). */
  readonly nice: number;
  /** What the processes are told beside their own. */
  readonly childEnv: NodeJS.ProcessEnv;
}

/** Reads the settings of the supervisor; its processes read the rest, as a stream process does. */
export function readDedicatedConfig(env: NodeJS.ProcessEnv): DedicatedConfig {
  return readConfig(env, (reader) => {
    const common = readCommonConfig(reader);
    const folder = `pillole-dedicated-${os.userInfo().uid}-${common.namespace}`;
    return {
      ...common,
      databaseUrl: reader.text('DATABASE_URL'),
      host: reader.text('DEDICATED_HOST', '127.0.0.1'),
      runFolder: reader.text('DEDICATED_RUN_FOLDER', path.join(os.tmpdir(), folder)),
      nice: reader.integer('DEDICATED_NICE', { min: -20, max: 19, fallback: -5 }),
      childEnv: env,
    };
  });
}
