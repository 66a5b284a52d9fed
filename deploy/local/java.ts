import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { SetupError } from './setup-error.ts';

const JAVA_MIN = 17;
const INSTALL =
  'install it with: sudo apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)';

/**
 * Finds the Java command for Kafka and the Schema Registry: version 17 or later, below `home`
 * (JAVA_HOME) if that is set.
 * @throws SetupError when there is none
 */
export function findJava(home: string | undefined): string {
  const command = home === undefined ? 'java' : path.join(home, 'bin', 'java');
  const run = spawnSync(command, ['-version'], { encoding: 'utf8' });
  if (run.status !== 0) {
    throw new SetupError(`Java ${JAVA_MIN} or later is required but was not found; ${INSTALL}`);
  }
  const version = /version "(?:1\.)?(\d+)/.exec(`${run.stderr}${run.stdout}`)?.[1];
  if (version === undefined || Number(version) < JAVA_MIN) {
    throw new SetupError(
      `Java ${JAVA_MIN} or later is required, found ${version ?? '?'}; ${INSTALL}`,
    );
  }
  return command;
}
