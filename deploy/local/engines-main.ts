import path from 'node:path';
import { Command } from 'commander';
import { takeLock } from '../../lib/child-process/lock.ts';
import { endOrphans } from '../../lib/child-process/orphans.ts';
import { readLauncherConfig } from './config.ts';
import { startEngines } from './engines.ts';
import { placeAt } from './place.ts';

/**
 * The four engines alone, for development: `node engines-main.js --data DIR`. Prints one JSON line
 * with their addresses on standard output, progress on standard error; stays until SIGTERM.
 */
const { data } = new Command('engines')
  .requiredOption('--data <dir>', 'folder for data, logs and ports')
  .parse()
  .opts<{ readonly data: string }>();

const say = (line: string) => process.stderr.write(`${line}\n`);
const place = placeAt(path.resolve(data));
const locked = takeLock(place.lock);
if (!locked.ok) {
  say(`Engines already run in ${place.folder} (pid ${locked.owner.pid}).`);
  process.exit(1);
}
try {
  await endOrphans(place.run);
  const { kinds, pids, stop, kill, ...addresses } = await startEngines({
    place,
    config: readLauncherConfig(),
    say,
  });
  process.stdout.write(`${JSON.stringify({ ...addresses, kinds, pids: pids() })}\n`);
  let asked = 0;
  const end = async () => {
    if (asked++ > 0) kill();
    await stop();
    locked.lock.release();
    process.exit(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void end());
  }
} catch (error) {
  locked.lock.release();
  say((error as Error).message);
  process.exit(1);
}
