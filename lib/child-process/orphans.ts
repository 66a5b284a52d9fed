import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunRecord } from './child.ts';
import { isSameAlive, parseIdentity } from './identity.ts';

/** A clean exit is requested first; SIGKILL follows. */
const CLEAN_END_MS = 4_000;
const KILLED_END_MS = 5_000;
const POLL_MS = 50;

/**
 * Ends the orphans of an earlier parent that was killed by -9: every process recorded in `runFolder`
 * that still lives with the recorded start time (a reused pid is left alone). Removes the records.
 * @returns the names of the processes it ended
 */
export async function endOrphans(runFolder: string): Promise<string[]> {
  const records = readRecords(runFolder);
  const living = records.filter(({ record }) => isSameAlive(record));
  await Promise.all(living.map(({ record }) => endOne(record)));
  for (const { file } of records) rmSync(file, { force: true });
  return living.map(({ record }) => record.name);
}

async function endOne(record: RunRecord): Promise<void> {
  signal(record, record.pid, record.stopSignal);
  if (await isGoneWithin(record, CLEAN_END_MS)) return;
  signal(record, -record.pid, 'SIGKILL');
  signal(record, record.pid, 'SIGKILL');
  if (await isGoneWithin(record, KILLED_END_MS)) return;
  throw new Error(`${record.name} (pid ${record.pid}) does not exit; end it by hand.`);
}

async function isGoneWithin(record: RunRecord, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs;
  while (isSameAlive(record)) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function signal(record: RunRecord, target: number, name: NodeJS.Signals): void {
  if (!isSameAlive(record)) return;
  try {
    process.kill(target, name);
  } catch {}
}

function readRecords(runFolder: string): { readonly file: string; readonly record: RunRecord }[] {
  let names: string[];
  try {
    names = readdirSync(runFolder).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const file = path.join(runFolder, name);
    const text = readFileSync(file, 'utf8');
    const identity = parseIdentity(text);
    if (identity === undefined) return [];
    const stopSignal = text.includes('"SIGINT"') ? 'SIGINT' : 'SIGTERM';
    return [{ file, record: { ...identity, name: name.replace(/\.json$/, ''), stopSignal } }];
  });
}
