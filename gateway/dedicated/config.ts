import os from 'node:os';
import path from 'node:path';
import { type CommonConfig, readCommonConfig, readConfig } from '../../lib/config.ts';

export interface DedicatedConfig extends CommonConfig {
  readonly databaseUrl: string;
  /** Address that the processes listen on. */
  readonly host: string;
  /** Where it is kept which processes run; of this supervisor alone. */
  readonly runFolder: string;
  /** In the temp directory, where anybody may have been before. */
  readonly isRunFolderShared: boolean;
  /** Priority of the processes, where the system allows it: -20 (first) to 19 (last). */
  readonly nice: number;
  /** What the processes are told beside their own. */
  readonly childEnv: NodeJS.ProcessEnv;
}

/** Reads the settings of the supervisor; its processes read the rest, as a stream process does. */
export function readDedicatedConfig(env: NodeJS.ProcessEnv): DedicatedConfig {
  return readConfig(env, (reader) => {
    const common = readCommonConfig(reader);
    const chosen = reader.optional('DEDICATED_RUN_FOLDER');
    const folder = `pillole-dedicated-${os.userInfo().uid}-${common.namespace}`;
    return {
      ...common,
      databaseUrl: reader.text('DATABASE_URL'),
      host: reader.text('DEDICATED_HOST', '127.0.0.1'),
      runFolder: chosen ?? path.join(os.tmpdir(), folder),
      isRunFolderShared: chosen === undefined,
      nice: reader.integer('DEDICATED_NICE', { min: -20, max: 19, fallback: -5 }),
      childEnv: env,
    };
  });
}
