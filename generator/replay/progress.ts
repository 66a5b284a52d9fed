import type { Tally } from './replay.ts';

/** Seconds between plain lines; a terminal's line is drawn more often. */
const PLAIN_EVERY_MS = 2_000;
const TERMINAL_EVERY_MS = 200;

export interface Progress {
  /** Writes a line of its own, above the progress. */
  note(text: string): void;
  stop(): void;
}

/** Shows how a run goes: one line that changes on a terminal, plain lines elsewhere. */
export function showProgress(
  tally: Tally,
  total: number,
  /** Seconds that the pace makes the run last; 0 when it goes as fast as possible. */
  plannedS: number,
  out: NodeJS.WriteStream = process.stderr,
): Progress {
  const started = performance.now();
  const draw = () => {
    const line = progressLine(tally, total, plannedS, (performance.now() - started) / 1000);
    out.write(out.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
  };
  const timer = setInterval(draw, out.isTTY ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS);
  const clear = () => {
    if (out.isTTY) out.write('\r\x1b[K');
  };
  return {
    note(text) {
      clear();
      out.write(`${text}\n`);
    },
    stop() {
      clearInterval(timer);
      clear();
    },
  };
}

export function progressLine(
  tally: Tally,
  total: number,
  plannedS: number,
  elapsedS: number,
): string {
  const rate = elapsedS > 0 ? tally.sent / elapsedS : 0;
  const bySpeed = rate > 0 ? (total - tally.sent) / rate : Number.POSITIVE_INFINITY;
  const left = plannedS > 0 ? Math.max(0, plannedS - elapsedS) : bySpeed;
  const percent = total === 0 ? 100 : Math.floor((tally.sent / total) * 100);
  const bad = tally.refused + tally.unknown;
  const trouble = bad === 0 ? '' : `, ${bad} not accepted`;
  return `${tally.sent} of ${total} (${percent} %), ${formatRate(rate)}, ${formatLeft(left)}${trouble}`;
}

/** Rate of a run in words: `12.3 pills/s`. */
export function formatRate(perS: number): string {
  return `${perS < 100 ? perS.toFixed(1) : Math.round(perS)} pills/s`;
}

function formatLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'waiting';
  if (seconds < 90) return `${Math.ceil(seconds)} s left`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min left`;
  return `${(seconds / 3_600).toFixed(1)} h left`;
}
