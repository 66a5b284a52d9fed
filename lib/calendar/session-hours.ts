import type { Calendar } from './build.ts';

/** A session's trading time, its breaks included. Times are Unix milliseconds. */
export interface SessionHours {
  /** Local, ISO 8601. */
  readonly date: string;
  readonly openMs: number;
  readonly closeMs: number;
}

/** The sessions of which some trading time is from `fromMs` up to `toMs`, in order. */
export function sessionsBetween(calendar: Calendar, fromMs: number, toMs: number): SessionHours[] {
  const { sessions, sessionStarts, sessionEnds, times, states } = calendar;
  const found: SessionHours[] = [];
  let at = 0;
  for (const [index, { date }] of sessions.entries()) {
    const midnight = sessionStarts[index]!;
    const end = sessionEnds[index]!;
    if (end <= fromMs) continue;
    if (midnight >= toMs) break;
    while (at + 1 < times.length && times[at + 1]! <= midnight) at += 1;
    let openMs: number | undefined;
    let closeMs = end;
    for (let place = at; place < times.length && times[place]! < end; place += 1) {
      if (states[place] !== 'open') continue;
      openMs ??= Math.max(midnight, times[place]!);
      closeMs = Math.min(end, times[place + 1] ?? end);
    }
    if (openMs === undefined || closeMs <= fromMs || openMs >= toMs) continue;
    found.push({ date, openMs, closeMs });
  }
  return found;
}
