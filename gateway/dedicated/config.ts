import os from 'node:os';
import path from 'node:path';
import { readBind, readCommonConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';
import { readExposure } from '../../lib/config/exposure.ts';
import { readTrustedProxies } from '../http/client-address.ts';

export type DedicatedConfig = ReturnType<typeof readDedicatedConfig>;

/** Reads the supervisor's settings; its processes read the rest, like any stream process. */
export function readDedicatedConfig(env: NodeJS.ProcessEnv) {
  return readConfig(env, (reader) => {
    const common = readCommonConfig(reader);
    const bind = readBind(reader, 'DEDICATED');
    readExposure(reader, bind);
    readTrustedProxies(reader); // a fault would end each process of a socket, one after the other
    const chosen = reader.get('DEDICATED_RUN_FOLDER');
    const folder = `pillole-dedicated-${os.userInfo().uid}-${common.namespace}`;
    return {
      ...common,
      open: [...common.open, ...bind.open],
      databaseUrl: readEngineUrl(reader, 'DATABASE_URL'),
      /** Folder with the records of running processes; of this supervisor alone. */
      runFolder: chosen ?? path.join(os.tmpdir(), folder),
      /** Whether the folder is in the temp directory, where another user may have created it. */
      isRunFolderShared: chosen === undefined,
      /** Priority of the processes, if the system allows it: -20 (first) to 19 (last). */
      nice: reader.get('DEDICATED_NICE'),
      /** Environment of the processes, beside their own variables; with the address they listen on. */
      childEnv: { ...env, STREAM_HOST: bind.host, STREAM_PUBLIC: env.DEDICATED_PUBLIC },
    };
  });
}
