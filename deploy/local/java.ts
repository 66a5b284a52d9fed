/** The Java that runs Kafka and the Schema Registry. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Sorry } from './sorry.ts';

const JAVA_MIN = 17;
const INSTALL =
  'install it with: sudo apt-get install openjdk-17-jre-headless (macOS: brew install openjdk@17)';

/** Path or name of a java command of version 17 or later. @throws Sorry when there is none. */
export function findJava(): string {
  const home = process.env.JAVA_HOME;
  const command = home === undefined || home === '' ? 'java' : join(home, 'bin', 'java');
  const run = spawnSync(command, ['-version'], { encoding: 'utf8' });
  if (run.status !== 0) {
    throw new Sorry(`Java ${JAVA_MIN} or later is needed and was not found; ${INSTALL}`);
  }
  const version = /version "(?:1\.)?(\d+)/.exec(`${run.stderr}${run.stdout}`)?.[1];
  if (version === undefined || Number(version) < JAVA_MIN) {
    throw new Sorry(`Java ${JAVA_MIN} or later is needed, found ${version ?? '?'}; ${INSTALL}`);
  }
  return command;
}
