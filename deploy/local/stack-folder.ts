import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { SetupError } from './setup-error.ts';
import type { StackLayout } from './stack-layout.ts';

/**
 * Creates the folder of a stack, which only this user can enter, or closes that of an earlier start
 * to other users. A copied folder loses lock, pids and addresses: they are those of the original
 * stack, which may still run. The file `home` records the folder's own path.
 * @throws SetupError when the folder belongs to another user, or holds other files
 */
export function openStackFolder(layout: StackLayout): void {
  const { folder } = layout;
  makePrivate(folder);
  const file = path.join(folder, 'home');
  const here = realpathSync(folder);
  const home = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (home !== undefined && home !== here) {
    for (const copied of [layout.lock, layout.stack, layout.run]) {
      rmSync(copied, { recursive: true, force: true });
    }
  }
  // The mode of these files may be that of an earlier version.
  for (const open of [layout.ports, layout.outbox]) {
    if (existsSync(open)) chmodSync(open, open === layout.ports ? 0o600 : 0o700);
  }
  for (const inside of [layout.data(''), layout.logs, layout.run]) {
    mkdirSync(inside, { recursive: true, mode: 0o700 });
    chmodSync(inside, 0o700);
  }
  writeFileAtomically(file, here);
}

function makePrivate(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // A link to a folder is followed; the owner of the folder counts.
  const { uid } = lstatSync(realpathSync(folder));
  const us = process.getuid?.();
  if (us !== undefined && uid !== us) {
    throw new SetupError(`${folder} belongs to user ${uid}: name a folder of yours with --data.`);
  }
  const isOurs =
    folder === path.join(packageRoot, '.local') ||
    ['home', 'ports.json'].some((name) => existsSync(path.join(folder, name)));
  if (!isOurs && readdirSync(folder).length > 0) {
    throw new SetupError(
      `${folder} holds other files, and a stack closes its folder to other users: ` +
        'name an empty folder with --data.',
    );
  }
  chmodSync(folder, 0o700);
}
