import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Arrivals, ReceiverRun } from './arrivals.ts';

/** What an endpoint does with a message: 204 at once, 500 at once, or nothing. */
export type Answering = 'accepts' | 'fails' | 'hangs';

/** What the receiver's process is told; it answers each order once. */
export type Order =
  | { readonly kind: 'port' | 'progress' | 'report' }
  | { readonly kind: 'trust'; readonly secrets: readonly string[] }
  | { readonly kind: 'answer'; readonly how: Answering; readonly endpoints: readonly number[] }
  | { readonly kind: 'begin'; readonly run: ReceiverRun };

/** What came in a run. */
export interface ReceiverReport {
  /** By number of the endpoint. */
  readonly endpoints: readonly Arrivals[];
  /** Messages of the sample that an independent library took, and those that it did not. */
  readonly verified: number;
  readonly forged: number;
}

/** A customer's server on loopback, in a process of its own: one path an endpoint. */
export interface Receiver {
  urlOf(endpoint: number): string;
  /** Secrets by number of the endpoint. */
  trust(secrets: readonly string[]): Promise<void>;
  /** How these endpoints answer from now on; all others accept. */
  answer(how: Answering, endpoints: readonly number[]): Promise<void>;
  begin(run: ReceiverRun): Promise<void>;
  /** Pills accepted so far, summed over the endpoints, each once. */
  progress(): Promise<number>;
  report(): Promise<ReceiverReport>;
  stop(): void;
}

/** Starts the receiver; it ends when it is stopped, and with this process. */
export async function startReceiver(): Promise<Receiver> {
  const own = fileURLToPath(import.meta.url);
  const child = fork(own.replace(/receiver\.(ts|js)$/, 'receiver-main.$1'), {
    ...{ execArgv: [], serialization: 'advanced' },
  });
  const gone = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`The receiver ended (${code}).`)));
  });
  gone.catch(() => undefined);
  const next = () => Promise.race([new Promise((resolve) => child.once('message', resolve)), gone]);
  // One order at a time: answers carry no name.
  let last: Promise<unknown> = next();
  const ask = <T>(order: Order): Promise<T> => {
    const answer = last.then(() => {
      const told = next();
      child.send(order);
      return told;
    });
    last = answer;
    return answer as Promise<T>;
  };
  const port = await ask<number>({ kind: 'port' });
  return {
    urlOf: (endpoint) => `http://127.0.0.1:${port}/e/${endpoint}`,
    trust: (secrets) => ask({ kind: 'trust', secrets }),
    answer: (how, endpoints) => ask({ kind: 'answer', how, endpoints }),
    begin: (run) => ask({ kind: 'begin', run }),
    progress: () => ask({ kind: 'progress' }),
    report: () => ask({ kind: 'report' }),
    stop() {
      if (child.connected) child.disconnect();
    },
  };
}

export function endpointOfPath(path: string): number {
  return Number(path.slice('/e/'.length));
}
