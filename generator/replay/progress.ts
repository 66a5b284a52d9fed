import type { Tally } from './send-quotes.ts';

/** Interval of plain lines; a terminal's line is redrawn more often. */
const PLAIN_EVERY_MS = 2_000;
const TERMINAL_EVERY_MS = 200;

/** Shows the progress of a run: one changing line on a terminal, plain lines elsewhere. */
export function showProgress(
  tally: Tally,
  total: number,
  /** Planned duration in seconds; 0 when the run is as fast as possible. */
  plannedS: number,
  out: NodeJS.WriteStream = process.stderr,
) {
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
    /** Writes a separate line above the progress. */
    note(text: string): void {
      clear();
      out.write(`${text}\n`);
    },
    stop(): void {
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

/** Text of a rate: `12.3 pills/s`. */
export function formatRate(perS: number): string {
  return `${perS < 100 ? perS.toFixed(1) : Math.round(perS)} pills/s`;
}

function formatLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'waiting';
  if (seconds < 90) return `${Math.ceil(seconds)} s left`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min left`;
  return `${(seconds / 3_600).toFixed(1)} h left`;
}
