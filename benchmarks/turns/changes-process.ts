import { Agent, request } from 'undici';
import { answerParent } from '../harness/worker.ts';
import { type Endpoint, sendChange } from './change.ts';

// A customer who sends many changes of one account at once, in a process of its own.

/** Begins to keep this many changes in flight; without it, they end, and the answer counts them. */
export interface Changes {
  readonly begin?: { readonly endpoint: Endpoint; readonly parallel: number };
}

let isOver = true;
let running: Promise<unknown> = Promise.resolve();
let statuses: Record<number, number> = {};

answerParent(async ({ begin }: Changes) => {
  if (begin === undefined) {
    isOver = true;
    await running;
    return statuses;
  }
  const { endpoint, parallel } = begin;
  [isOver, statuses] = [false, {}];
  const dispatcher = new Agent({ connections: parallel });
  const keepOne = async () => {
    while (!isOver) {
      const status = await sendChange(request, dispatcher, endpoint).catch(() => 0);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  running = Promise.all(Array.from({ length: parallel }, keepOne)).then(() => dispatcher.close());
  return undefined;
});
