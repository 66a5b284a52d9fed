import path from 'node:path';
import { Command } from 'commander';
import { takeLock } from '../../lib/child-process/lock.ts';
import { endOrphans } from '../../lib/child-process/orphans.ts';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { readLauncherConfig } from './config.ts';
import { startEngines } from './engines.ts';
import { openStackFolder } from './stack-folder.ts';
import { stackLayout } from './stack-layout.ts';

/**
 * Runs only the four engines, for development: `node engines-main.js --data DIR`. Writes their
 * addresses, which hold passwords, to `DIR/engines.json` and prints its path on standard output,
 * progress on standard error; runs until SIGTERM.
 */
const { data } = new Command('engines')
  .requiredOption('--data <dir>', 'folder for data, logs and ports')
  .parse()
  .opts<{ readonly data: string }>();

const report = (line: string) => process.stderr.write(`${line}\n`);
const layout = stackLayout(path.resolve(data));
process.umask(0o077);
openStackFolder(layout);
const locked = takeLock(layout.lock);
if (!locked.ok) {
  report(`Engines already run in ${layout.folder} (pid ${locked.owner.pid}).`);
  process.exit(1);
}
try {
  await endOrphans(layout.run);
  const { kinds, pids, stop, kill, ...addresses } = await startEngines({
    layout,
    config: readLauncherConfig(),
    report,
  });
  const file = path.join(layout.folder, 'engines.json');
  writeFileAtomically(file, `${JSON.stringify({ ...addresses, kinds, pids: pids() })}\n`);
  process.stdout.write(`${file}\n`);
  let signals = 0;
  const end = async () => {
    if (signals++ > 0) kill();
    await stop();
    locked.lock.release();
    process.exit(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => void end());
  }
} catch (error) {
  locked.lock.release();
  report((error as Error).message);
  process.exit(1);
}
