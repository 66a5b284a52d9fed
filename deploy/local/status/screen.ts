import { setTimeout as sleep } from 'node:timers/promises';
import { createLogUpdate } from 'log-update';
import { figuresBetween } from './figures.ts';
import { takeSample } from './sample.ts';
import { statusLine, statusPanel } from './text.ts';

export interface Screen {
  /** Tells a line that stays. */
  say(line: string): void;
  /** Tells how the platform does until the signal is aborted. */
  watch(places: () => ReadonlyMap<string, string>, signal: AbortSignal): Promise<void>;
}

export interface ScreenOptions {
  readonly output: NodeJS.WriteStream;
  /** Where the output is no terminal: a line so often. */
  readonly lineEveryS: number;
}

const REPAINT_MS = 1_000;
const EVENTS_MAX = 5;
const LONG_MS = 3_600_000;

/** A terminal gets a panel that is repainted below what stays; a pipe or file gets plain lines. */
export function createScreen({ output, lineEveryS }: ScreenOptions): Screen {
  const panel = output.isTTY === true ? createLogUpdate(output) : undefined;
  const events: string[] = [];
  let isWatching = false;
  return {
    say(line) {
      if (panel === undefined || !isWatching) {
        output.write(`${line}\n`);
        return;
      }
      events.push(`${new Date().toTimeString().slice(0, 8)} ${line}`);
      if (events.length > EVENTS_MAX) events.shift();
      panel.persist(line);
    },
    async watch(places, signal) {
      isWatching = true;
      const everyMs = panel === undefined ? lineEveryS * 1_000 : REPAINT_MS;
      let before = await takeSample(places());
      while (await passes(everyMs, signal)) {
        const now = await takeSample(places());
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

/** Says nothing. */
export const QUIET: Screen = {
  say() {},
  async watch(_, signal) {
    while (!signal.aborted) await passes(LONG_MS, signal);
  },
};

/** @returns whether the time has passed before the signal was aborted */
function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { signal }).catch(() => false);
}
