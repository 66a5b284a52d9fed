/** Where the local stack keeps its things. */
import { join } from 'node:path';
import { packageRoot } from '../../lib/root.ts';

export type Place = {
  /** All below it belongs to one stack. */
  folder: string;
  data: (engine: string) => string;
  logs: string;
  run: string;
  lock: string;
  ports: string;
  stack: string;
  /** Downloaded engines: the same for every stack of this clone. */
  engines: string;
};

/** The layout below `folder` (`.local` of the clone by default). */
export function placeAt(folder: string = join(packageRoot, '.local')): Place {
  return {
    folder,
    data: (engine) => join(folder, 'data', engine),
    logs: join(folder, 'logs'),
    run: join(folder, 'run'),
    lock: join(folder, 'lock'),
    ports: join(folder, 'ports.json'),
    stack: join(folder, 'stack.json'),
    engines: join(packageRoot, '.local', 'engines'),
  };
}
