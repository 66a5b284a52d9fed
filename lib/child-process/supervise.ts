import { setTimeout as sleep } from 'node:timers/promises';
import type { Child, ChildExit } from './child.ts';

/** The pause doubles from `firstMs` to `maxMs`; after `resetAfterMs` of uptime it starts over. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly resetAfterMs: number;
}

export type Supervised = Awaited<ReturnType<typeof supervise>>;

const BACKOFF: Backoff = { firstMs: 500, maxMs: 10_000, resetAfterMs: 30_000 };

/**
 * Starts the child and keeps it running until `stop`: after an exit, which is reported, the child is
 * restarted after a growing pause. @throws Error when the first start fails.
 */
export async function supervise(options: {
  readonly name: string;
  readonly start: () => Promise<Child>;
  /** Resolves when the child is ready; rejects when it cannot be. Called after each start. */
  readonly ready: (child: Child) => Promise<void>;
  readonly say: (line: string) => void;
  /** Called when the pid has changed or the child has exited. */
  readonly onChange?: () => void;
  readonly backoff?: Partial<Backoff>;
  /** An abort stops the child as `stop` does. */
  readonly signal?: AbortSignal | undefined;
}) {
  const backoff = { ...BACKOFF, ...options.backoff };
  const stopping = new AbortController();
  let child: Child | undefined = await options.start();
  let startedAt = Date.now();
  let failures = 0;
  options.onChange?.();
  const ready = options.ready(child);
  ready.catch(() => {}); // callers that await `ready` handle the error; a restart may cure it

  async function watch(first: Child): Promise<void> {
    let current: Child | undefined = first;
    while (!stopping.signal.aborted) {
      const exit = current === undefined ? undefined : await current.exited;
      child = undefined;
      if (stopping.signal.aborted) return;
      options.onChange?.();
      if (Date.now() - startedAt >= backoff.resetAfterMs) failures = 0;
      const waitMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(failures, 20));
      failures += 1;
      options.say(`${options.name} ${describe(exit)}, restart in ${waitMs / 1000} s`);
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
      current = await restart();
    }
  }

  async function restart(): Promise<Child | undefined> {
    startedAt = Date.now();
    try {
      const next = await options.start();
      child = next;
      if (stopping.signal.aborted) {
        await next.stop();
        return undefined;
      }
      options.onChange?.();
      void options.ready(next).then(
        () => {
          if (!stopping.signal.aborted) {
            options.say(`${options.name} is back after ${seconds(Date.now() - startedAt)} s`);
          }
        },
        () => {}, // the child exited again (reported by the loop), or is slow: see its log
      );
      return next;
    } catch (error) {
      options.say(`${options.name} did not start: ${(error as Error).message}`);
      return undefined;
    }
  }

  const watching = watch(child);
  const stop = async () => {
    stopping.abort();
    await child?.stop();
    await watching;
  };
  options.signal?.addEventListener('abort', () => void stop(), { once: true });
  if (options.signal?.aborted === true) void stop();
  return {
    name: options.name,
    /** Undefined between an exit and the restart. */
    pid: () => child?.pid,
    /** Settles with the readiness of the first start. */
    ready,
    stop,
    kill(): void {
      stopping.abort();
      child?.kill();
    },
  };
}

function describe(exit: ChildExit | undefined): string {
  if (exit === undefined) return 'is not running';
  return exit.signal === null ? `ended with exit code ${exit.code}` : `died by ${exit.signal}`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
