import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';

/** Files and folders of one local stack. */
export type StackLayout = ReturnType<typeof stackLayout>;

/** The layout below `folder`, by default `.local` of the clone. */
export function stackLayout(folder: string = path.join(packageRoot, '.local')) {
  return {
    /** Holds everything below, except the engines. */
    folder,
    data: (engine: string): string => path.join(folder, 'data', engine),
    logs: path.join(folder, 'logs'),
    run: path.join(folder, 'run'),
    lock: path.join(folder, 'lock'),
    ports: path.join(folder, 'ports.json'),
    stack: path.join(folder, 'stack.json'),
    /** The secret of the key hashes: without it every key is void. */
    pepper: path.join(folder, 'pepper'),
    passwords: path.join(folder, 'passwords.json'),
    /** Passwords in the forms of psql and curl. */
    pgpass: path.join(folder, 'pgpass'),
    analystNetrc: path.join(folder, 'analyst.netrc'),
    demoKeys: path.join(folder, 'demo-keys.json'),
    /** API key of the canary, if `--canary` was given. */
    canaryKey: path.join(folder, 'canary-key'),
    /** Mails, one file each, if no SMTP server is configured. */
    outbox: path.join(folder, 'outbox'),
    exports: path.join(folder, 'exports'),
    /** Downloaded engines, shared by all stacks of this clone. */
    engines: path.join(packageRoot, '.local', 'engines'),
  };
}
