import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiAccess, createExport, type Day, readExport, removeExport } from './ways.ts';

const POLL_MS = 200;

/**
 * Keeps an export of an account running: when one is done, the next begins.
 * @returns once the first one runs; `stop` ends them and resolves to the pills that were written
 * @throws if an export fails; an account may begin 20 exports a day
 */
export async function keepExporting(api: ApiAccess, day: Day) {
  let onRunning: () => void = () => undefined;
  const running = new Promise<void>((resolve) => {
    onRunning = resolve;
  });
  const state = { isOver: false, rows: 0 };
  const work = (async () => {
    while (!state.isOver) await exportOnce(api, day, state, onRunning);
  })();
  await Promise.race([running, work]);
  work.catch(() => undefined); // thrown by `stop`
  return {
    async stop(): Promise<number> {
      state.isOver = true;
      await work;
      return state.rows;
    },
  };
}

async function exportOnce(
  api: ApiAccess,
  day: Day,
  work: { readonly isOver: boolean; rows: number },
  onRunning: () => void,
): Promise<void> {
  const { id } = await createExport(api, day);
  for (let seen = 0; ; await sleep(POLL_MS)) {
    const { state, progress, problem } = await readExport(api, id);
    if (problem !== null) throw new Error(`The export failed: ${problem}.`);
    if (state !== 'waiting') onRunning();
    work.rows += progress.rows - seen;
    seen = progress.rows;
    if (state === 'done' || work.isOver) break;
  }
  await removeExport(api, id);
}
