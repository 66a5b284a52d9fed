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
    engines: path.join(packageRoot, '.local', 'engines'),
  };
}
