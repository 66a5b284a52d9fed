import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadPlan, LoadReport } from './plan.ts';

/** The load generator's process, warm and waiting for its run. */
export interface Load {
  readonly pid: number | undefined;
  run(plan: LoadPlan): Promise<LoadReport>;
  stop(): void;
}

/** Starts the load generator and warms it up. @throws what its warm-up says. */
export async function startLoad(plan: LoadPlan): Promise<Load> {
  const own = fileURLToPath(import.meta.url);
  const child = fork(own.replace(/load\.(ts|js)$/, 'loader.$1'), { execArgv: [] });
  const gone = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`The load generator ended (${code}).`)));
  });
  gone.catch(() => undefined);
  const ask = (message: object) => {
    const answer = new Promise<unknown>((resolve, reject) => {
      child.once('message', (told: { error?: string }) => {
        if (told.error === undefined) resolve(told);
        else reject(new Error(told.error));
      });
      child.send(message);
    });
    return Promise.race([answer, gone]);
  };
  const stop = () => {
    if (child.connected) child.disconnect();
  };
  try {
    await ask({ warmUp: plan });
  } catch (error) {
    stop();
    throw error;
  }
  return { pid: child.pid, run: (run) => ask({ run }) as Promise<LoadReport>, stop };
}
