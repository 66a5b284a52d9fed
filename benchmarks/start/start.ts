import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describeMachine, type Machine } from '../machine.ts';
import { FIRST_START_MAX_MS, startOnce } from './one-start.ts';
import { type Start, type StartKind, type StartSummary, stepsOf, summariseStarts } from './plan.ts';

export interface StartOptions {
  readonly rounds: number;
  readonly say: (line: string) => void;
}

export interface StartResult {
  readonly benchmark: 'start';
  readonly at: string;
  readonly machine: Machine;
  readonly summaries: readonly StartSummary[];
  readonly starts: readonly Start[];
}

/**
 * Measures the time from `npm start` to the first pill in a socket: with a fresh data folder, and
 * again on what that start has left. A first start that is not counted downloads the engines where
 * they are missing, and makes the build; files are in the page cache afterwards.
 */
export async function measureStart({ rounds, say }: StartOptions): Promise<StartResult> {
  const machine = describeMachine();
  say('a first start, not counted: downloads and the build are not measured');
  await inFolder((folder) => startOnce(folder, FIRST_START_MAX_MS));
  const starts: Start[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    await inFolder(async (folder) => {
      for (const kind of ['cold', 'warm'] as const) starts.push(await startAs(kind, folder, round));
    });
  }
  return {
    ...{ benchmark: 'start', at: new Date().toISOString(), machine },
    ...{ summaries: summariseStarts(starts), starts },
  };

  async function startAs(kind: StartKind, folder: string, round: number): Promise<Start> {
    const moments = await startOnce(folder);
    const wholeMs = moments.firstPill;
    say(`round ${round}, ${kind}: first pill in a socket after ${(wholeMs / 1e3).toFixed(1)} s`);
    return { kind, round, wholeMs, steps: stepsOf(moments) };
  }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
