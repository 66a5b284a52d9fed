import { type Child, type ChildSpec, startChild as start } from '../../lib/child-process/child.ts';
import { childEnvironment } from './config.ts';

export { type Child, killChildren, withPdeathsig } from '../../lib/child-process/child.ts';

/** Output of a child of the launcher goes to `<logFolder>/<name>.log`. */
export interface LocalChildSpec extends ChildSpec {
  /** Added to the launcher's own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly logFolder: string;
}

/** Starts a child of the launcher. @throws Error when the command cannot be started at all. */
export async function startChild(spec: LocalChildSpec): Promise<Child & { logFile: string }> {
  const child = await start({ ...spec, env: childEnvironment(spec.env) });
  return { ...child, logFile: child.logFile! };
}
