import { setTimeout as sleep } from 'node:timers/promises';
import { createLogUpdate } from 'log-update';
import { figuresBetween } from './figures.ts';
import { takeSample } from './sample.ts';
import { statusLine, statusPanel } from './text.ts';

export interface Screen {
  /** Prints a line that stays. */
  report(line: string): void;
  /** Shows the status of the platform until the signal is aborted. */
  watch(metricsUrls: () => ReadonlyMap<string, string>, signal: AbortSignal): Promise<void>;
}

const REPAINT_MS = 1_000;
const EVENTS_MAX = 5;
const LONG_MS = 3_600_000;

/**
 * On a terminal, a panel that is repainted below the lines that stay; on a pipe or file, plain lines
 * with a status line every `lineEveryS` seconds.
 */
export function createScreen(output: NodeJS.WriteStream, lineEveryS: number): Screen {
  const panel = output.isTTY === true ? createLogUpdate(output) : undefined;
  const events: string[] = [];
  let isWatching = false;
  return {
    report(line) {
      if (panel === undefined || !isWatching) {
        output.write(`${line}\n`);
        return;
      }
      events.push(`${new Date().toTimeString().slice(0, 8)} ${line}`);
      if (events.length > EVENTS_MAX) events.shift();
      panel.persist(line);
    },
    async watch(metricsUrls, signal) {
      isWatching = true;
      const everyMs = panel === undefined ? lineEveryS * 1_000 : REPAINT_MS;
      let before = await takeSample(metricsUrls());
      while (await passes(everyMs, signal)) {
        const now = await takeSample(metricsUrls());
        if (signal.aborted) break;
        const figures = figuresBetween(before, now);
        before = now;
        if (panel === undefined) output.write(`${statusLine(figures)}\n`);
        else panel(statusPanel(figures, events));
      }
      isWatching = false;
      panel?.done();
    },
  };
}

/** Prints nothing. */
export const QUIET: Screen = {
  report() {},
  async watch(_, signal) {
    while (!signal.aborted) await passes(LONG_MS, signal);
  },
};

/** @returns false if the signal was aborted before the time had passed */
function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { signal }).catch(() => false);
}
