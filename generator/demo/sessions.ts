/** A market's usual day. Holidays are not known here: that is the calendars' part. */
export interface Venue {
  readonly timeZone: string;
  /** Trading hours of a weekday in local time, minutes since midnight, in order. */
  readonly sessions: readonly (readonly [opens: number, closes: number])[];
}

export type MarketState = 'open' | 'lunch_break' | 'closed';

const at = (hours: number, minutes = 0) => hours * 60 + minutes;

/** Regular sessions as the exchanges publish them (2026). */
export const VENUES = {
  tokyo: {
    timeZone: 'Asia/Tokyo',
    sessions: [
      [at(9), at(11, 30)],
      [at(12, 30), at(15, 30)],
    ],
  },
  hongKong: {
    timeZone: 'Asia/Hong_Kong',
    sessions: [
      [at(9, 30), at(12)],
      [at(13), at(16)],
    ],
  },
  shanghai: {
    timeZone: 'Asia/Shanghai',
    sessions: [
      [at(9, 30), at(11, 30)],
      [at(13), at(15)],
    ],
  },
  seoul: { timeZone: 'Asia/Seoul', sessions: [[at(9), at(15, 30)]] },
  singapore: {
    timeZone: 'Asia/Singapore',
    sessions: [
      [at(9), at(12)],
      [at(13), at(17)],
    ],
  },
  sydney: { timeZone: 'Australia/Sydney', sessions: [[at(10), at(16)]] },
  mumbai: { timeZone: 'Asia/Kolkata', sessions: [[at(9, 15), at(15, 30)]] },
  // Currencies trade from Sunday 17:00 to Friday 17:00 in New York; asked in its own time below.
  currencies: { timeZone: 'America/New_York', sessions: [] },
} as const satisfies Readonly<Record<string, Venue>>;

export type VenueName = keyof typeof VENUES;

const clocks = new Map<VenueName, Intl.DateTimeFormat>();
const FX_WEEK_EDGE = at(17);

/** Asking Intl for a local time costs some 40 µs; a state holds for its minute. */
const MINUTE_MS = 60_000;
const known = new Map<VenueName, { readonly minute: number; readonly state: MarketState }>();

/** State of a venue at a moment (ms since 1970), by its usual day. */
export function marketStateAt(name: VenueName, epochMs: number): MarketState {
  const minute = Math.floor(epochMs / MINUTE_MS);
  const last = known.get(name);
  if (last?.minute === minute) return last.state;
  const state = stateOf(name, epochMs);
  known.set(name, { minute, state });
  return state;
}

function stateOf(name: VenueName, epochMs: number): MarketState {
  const { weekday, minute } = localTime(name, epochMs);
  if (name === 'currencies') return isFxWeek(weekday, minute) ? 'open' : 'closed';
  if (weekday === 'Sat' || weekday === 'Sun') return 'closed';
  const { sessions }: Venue = VENUES[name];
  if (sessions.some(([opens, closes]) => minute >= opens && minute < closes)) return 'open';
  const isBetween = minute >= sessions[0]![0] && minute < sessions.at(-1)![1];
  return isBetween ? 'lunch_break' : 'closed';
}

function isFxWeek(weekday: string, minute: number): boolean {
  if (weekday === 'Sat') return false;
  if (weekday === 'Sun') return minute >= FX_WEEK_EDGE;
  return weekday !== 'Fri' || minute < FX_WEEK_EDGE;
}

function localTime(name: VenueName, epochMs: number): { weekday: string; minute: number } {
  let clock = clocks.get(name);
  if (clock === undefined) {
    clock = new Intl.DateTimeFormat('en-US', {
      timeZone: VENUES[name].timeZone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    clocks.set(name, clock);
  }
  const parts = clock.formatToParts(epochMs);
  const part = (type: string) => parts.find((one) => one.type === type)?.value ?? '';
  return { weekday: part('weekday'), minute: Number(part('hour')) * 60 + Number(part('minute')) };
}
