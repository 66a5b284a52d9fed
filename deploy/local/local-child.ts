import { type Child, type ChildSpec, startChild as start } from '../../lib/child-process/child.ts';
import { childEnvironment } from './config.ts';

export { type Child, killChildren, withPdeathsig } from '../../lib/child-process/child.ts';

/**
 * Starts a child of the launcher; its output goes to `<logFolder>/<name>.log`. `env` is added to the
 * launcher's environment.
 * @throws Error when the command cannot be started
 */
export async function startChild(
  spec: ChildSpec & {
    readonly env?: Readonly<Record<string, string>>;
    readonly logFolder: string;
  },
): Promise<Child & { logFile: string }> {
  const child = await start({ ...spec, env: childEnvironment(spec.env) });
  return { ...child, logFile: child.logFile! };
}
