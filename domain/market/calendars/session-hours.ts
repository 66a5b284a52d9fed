import type { Calendar } from './build.ts';

/** A session's trading time, its breaks included. Times are Unix milliseconds. */
export interface SessionHours {
  /** Local, ISO 8601. */
  readonly date: string;
  readonly openMs: number;
  readonly closeMs: number;
}

/** The sessions with trading time between `fromMs` and `toMs`, in order. */
export function sessionsBetween(calendar: Calendar, fromMs: number, toMs: number): SessionHours[] {
  const { sessions, sessionStarts, sessionEnds, times, states } = calendar;
  const found: SessionHours[] = [];
  let at = 0;
  for (const [session, { date }] of sessions.entries()) {
    const midnight = sessionStarts[session]!;
    const end = sessionEnds[session]!;
    if (end <= fromMs) continue;
    if (midnight >= toMs) break;
    while (at + 1 < times.length && times[at + 1]! <= midnight) at += 1;
    let openMs: number | undefined;
    let closeMs = end;
    for (let index = at; index < times.length && times[index]! < end; index += 1) {
      if (states[index] !== 'open') continue;
      openMs ??= Math.max(midnight, times[index]!);
      closeMs = Math.min(end, times[index + 1] ?? end);
    }
    if (openMs === undefined || closeMs <= fromMs || openMs >= toMs) continue;
    found.push({ date, openMs, closeMs });
  }
  return found;
}
