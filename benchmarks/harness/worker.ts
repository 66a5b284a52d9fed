import { fork } from 'node:child_process';
import path from 'node:path';
import { setPriority } from '../../lib/child-process/priority.ts';
import { packageRoot } from '../../lib/files/package-root.ts';

/**
 * Forks a built program that calls `answerParent`. The process ends when it is stopped, and together
 * with this process.
 * @param program below `dist/benchmarks`, without `.js`
 */
export function startWorker(program: string, options: { nice?: number } = {}) {
  const file = path.join(packageRoot, 'dist', 'benchmarks', `${program}.js`);
  // Linux weighs whole sessions (autogroup): a lower priority must not be the benchmark's own.
  const detached = options.nice !== undefined;
  const child = fork(file, { execArgv: [], serialization: 'advanced', detached });
  if (options.nice !== undefined) setPriority(child.pid!, options.nice);
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`The process ${program} ended (${code}).`)));
  });
  ended.catch(() => undefined);
  let last: Promise<unknown> = Promise.resolve();
  return {
    pid: child.pid,
    /** One request at a time: answers carry no id. @throws the error of the worker */
    ask<Answer>(request: object): Promise<Answer> {
      const answered = last.then(async () => {
        const answer = new Promise<{ error?: string; answer?: unknown }>((resolve) => {
          child.once('message', resolve);
        });
        child.send(request);
        const { error, answer: value } = await Promise.race([answer, ended]);
        if (error !== undefined) throw new Error(error);
        return value as Answer;
      });
      last = answered.catch(() => undefined);
      return answered;
    },
    stop() {
      if (child.connected) child.disconnect();
    },
  };
}

/** Runs this process as a worker: answers each request of the parent, and ends with it. */
export function answerParent<Request>(answerTo: (request: Request) => unknown): void {
  process.on('message', async (request: Request) => {
    try {
      process.send?.({ answer: await answerTo(request) });
    } catch (error) {
      process.send?.({ error: (error as Error).message });
    }
  });
  process.on('disconnect', () => process.exit(0));
}
