import path from 'node:path';
import { packageRoot } from '../../lib/root.ts';

/** Where the local stack keeps its things. */
export interface Place {
  /** All below it belongs to one stack. */
  readonly folder: string;
  readonly data: (engine: string) => string;
  readonly logs: string;
  readonly run: string;
  readonly lock: string;
  readonly ports: string;
  readonly stack: string;
  /** What key hashes are made with: without it every key is void. */
  readonly pepper: string;
  /** The keys of the demo accounts, for programs of this machine. */
  readonly demoKeys: string;
  /** Mails, one a file, as long as no SMTP server is named. */
  readonly outbox: string;
  /** Downloaded engines: the same for every stack of this clone. */
  readonly engines: string;
}

/** The layout below `folder` (`.local` of the clone by default). */
export function placeAt(folder: string = path.join(packageRoot, '.local')): Place {
  return {
    folder,
    data: (engine) => path.join(folder, 'data', engine),
    logs: path.join(folder, 'logs'),
    run: path.join(folder, 'run'),
    lock: path.join(folder, 'lock'),
    ports: path.join(folder, 'ports.json'),
    stack: path.join(folder, 'stack.json'),
    pepper: path.join(folder, 'pepper'),
    demoKeys: path.join(folder, 'demo-keys.json'),
    outbox: path.join(folder, 'outbox'),
    engines: path.join(packageRoot, '.local', 'engines'),
  };
}
