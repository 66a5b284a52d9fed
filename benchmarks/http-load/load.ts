import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { HttpLoad, HttpLoadReport } from './plan.ts';

/** The load client's process. */
export interface LoadClient {
  /** One run at a time. @throws what the client says */
  run(load: HttpLoad): Promise<HttpLoadReport>;
  stop(): void;
}

/** Starts the load client; it ends when it is stopped, and with this process. */
export function startLoadClient(): LoadClient {
  const own = fileURLToPath(import.meta.url);
  const child = fork(own.replace(/load\.(ts|js)$/, 'client.$1'), { execArgv: [] });
  const gone = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`The load client ended (${code}).`)));
  });
  gone.catch(() => undefined);
  return {
    run(load) {
      const answer = new Promise<HttpLoadReport>((resolve, reject) => {
        child.once('message', (told: HttpLoadReport | { readonly error: string }) => {
          if ('error' in told) reject(new Error(told.error));
          else resolve(told);
        });
      });
      child.send(load);
      return Promise.race([answer, gone]);
    },
    stop() {
      if (child.connected) child.disconnect();
    },
  };
}
