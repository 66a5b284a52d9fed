import { type Cadences, lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import type { TradingVenue } from '../../../domain/market/calendars/venue-rules.ts';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import {
  ALWAYS_OPEN,
  judgeSilence,
  type MarketNow,
  NO_CALENDAR,
  type Quiet,
} from '../../../domain/market/quiet/silence.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { createCheckSchedule, type Scheduled } from './check-schedule.ts';
import { createQuietGroups, type QuietGroup, type QuietState } from './quiet-groups.ts';
import { createVenueFlows, type VenueFlow } from './venue-flows.ts';

export type QuietTracker = ReturnType<typeof createQuietTracker>;

interface QuietTrackerOptions {
  readonly cadences: Cadences;
  readonly markets: Markets;
  /** Checks per turn, so that no turn delays the pills. */
  readonly checksPerTurn: number;
  /** A symbol became quiet, is quiet for another reason, or received a pill. */
  readonly onChange: (state: QuietState) => void;
  readonly onGroup: (group: QuietGroup) => void;
}

interface TrackedSymbol extends Scheduled {
  readonly symbol: string;
  readonly venue: TradingVenue | undefined;
  readonly isTest: boolean;
  /** The pills of its venue; undefined for test symbols. */
  readonly flow: VenueFlow | undefined;
  /** Slot of its cadence. */
  readonly slot: number;
  lastAtMs: number;
  state: QuietState | undefined;
}

/** A symbol is checked this often, in case its cadence has become faster since it was scheduled. */
const CHECK_MS = 5_000;

/** The state of a symbol before its first pill. */
const NEVER_SEEN = {
  reason: 'never_seen',
  sinceMs: undefined,
  lateAfterMs: undefined,
  over: true,
} as const;

/**
 * Creates the tracker of which symbols are quiet, and why; bounded by their number. A symbol that
 * is not quiet is scheduled for the second in which it would be late. Its pills do not reschedule
 * it, its check does: so a pill costs nothing, and a symbol is checked once in 5 s. A quiet symbol
 * is not scheduled: a pill or a change of its market makes its check due.
 */
export function createQuietTracker(options: QuietTrackerOptions) {
  const { cadences, markets, checksPerTurn } = options;
  const tracked = new Map<string, TrackedSymbol>();
  const schedule = createCheckSchedule<TrackedSymbol>();
  const { groups, change } = createStates(options);
  const venues = createVenueWatch(markets);
  const flows = createVenueFlows();
  let receivingSinceMs: number | undefined;

  const track = (symbol: string, lastAtMs: number): TrackedSymbol => {
    const one = createTracked(symbol, lastAtMs, options, flows);
    tracked.set(symbol, one);
    if (one.flow !== undefined) flows.note(one.flow, lastAtMs);
    if (one.venue !== undefined) venues.add(one.venue);
    schedule.arm(one, lastAtMs + CHECK_MS);
    return one;
  };

  return {
    isKnown: (symbol: string) => tracked.has(symbol),
    /** undefined for a symbol that is not quiet and never was. */
    stateOf: (symbol: string) => tracked.get(symbol)?.state,
    /** Adds a symbol from before the start; no effect on a known symbol. */
    seed(symbol: string, receivedAt: Micros) {
      if (!tracked.has(symbol)) track(symbol, receivedAt / 1000);
    },
    /** Takes a live pill. Costs one lookup of its symbol. */
    note(symbol: string, receivedAt: Micros) {
      const atMs = receivedAt / 1000;
      const one = tracked.get(symbol);
      cadences.noteAt(one?.slot ?? cadences.slotOf(symbol), receivedAt);
      if (one === undefined) {
        const fresh = track(symbol, atMs);
        change(fresh, { ...NEVER_SEEN, symbol, venue: fresh.venue, untilMs: atMs });
        return;
      }
      if (atMs > one.lastAtMs) one.lastAtMs = atMs;
      if (one.flow !== undefined) flows.note(one.flow, atMs);
      if (one.state === undefined || one.state.over) return;
      change(one, { ...one.state, untilMs: atMs, over: true });
      schedule.arm(one, atMs + CHECK_MS);
    },
    groups: groups.all,
    /** Whether a group has symbols, and its venue sends nothing at all. */
    isSilent: ({ venue, symbols }: QuietGroup, nowMs: number) =>
      symbols.size > 0 && flows.isSilent(flows.of(venue), receivingSinceMs, nowMs),
    /**
     * Judges symbols that may have become quiet, and symbols whose market has changed. While pills
     * cannot arrive, a silence is no sign of a fault of the generator.
     * @returns how many checks are left for the next turn
     */
    turn(nowMs: number, isReceiving: boolean): number {
      // Symbols judged while no pills can arrive are judged again once they can.
      if (!isReceiving) receivingSinceMs = nowMs;
      for (const venue of venues.changed(nowMs)) {
        for (const symbol of groups.symbolsAt(venue)) schedule.wake(tracked.get(symbol)!);
      }
      for (const one of schedule.takeDue(nowMs, checksPerTurn)) {
        const judged = judgeSymbol(one, options, receivingSinceMs, nowMs);
        if (judged.state === undefined) {
          schedule.arm(one, Math.min(judged.askAtMs, nowMs + CHECK_MS));
        } else if (one.state?.over !== false || !isSame(one.state, judged.state)) {
          change(one, judged.state);
        }
      }
      return schedule.waiting();
    },
    isInSession: venues.isInSession,
  };
}

/** Keeps the groups of quiet symbols in step with the states of symbols. */
function createStates({ onChange, onGroup }: QuietTrackerOptions) {
  const groups = createQuietGroups(onGroup);
  const change = (one: TrackedSymbol, state: QuietState) => {
    if (one.state?.over === false && !one.isTest) groups.remove(one.state);
    one.state = state;
    if (!state.over && !one.isTest) groups.add(state);
    onChange(state);
  };
  return { groups, change };
}

function createTracked(
  symbol: string,
  lastAtMs: number,
  { markets, cadences }: QuietTrackerOptions,
  flows: Pick<ReturnType<typeof createVenueFlows>, 'of'>,
): TrackedSymbol {
  const venue = markets.venueOf(symbol);
  const isTest = isTestSymbol(symbol);
  return {
    symbol,
    venue,
    isTest,
    flow: isTest ? undefined : flows.of(venue),
    slot: cadences.slotOf(symbol),
    lastAtMs,
    state: undefined,
    armed: false,
  };
}

/** @returns why the symbol is quiet, or when to judge it again */
function judgeSymbol(
  one: TrackedSymbol,
  { cadences, markets }: QuietTrackerOptions,
  receivingSinceMs: number | undefined,
  nowMs: number,
): { state: QuietState } | { state: undefined; askAtMs: number } {
  const { symbol, venue, lastAtMs } = one;
  const lateMs = lateAfterMs(cadences.medianMsAt(one.slot));
  const market = marketOf(one, markets, nowMs);
  const judged = judgeSilence({ lastAtMs, lateAfterMs: lateMs, market, receivingSinceMs, nowMs });
  if (judged.quiet === undefined) return { state: undefined, askAtMs: judged.askAtMs };
  const { reason, sinceMs, untilMs } = judged.quiet;
  const patienceMs = reason === 'generator_late' ? lateMs : undefined;
  return {
    state: { reason, sinceMs, untilMs, symbol, venue, lateAfterMs: patienceMs, over: false },
  };
}

function marketOf({ venue, isTest }: TrackedSymbol, markets: Markets, nowMs: number): MarketNow {
  if (venue !== undefined) return markets.at(venue, nowMs);
  return isTest ? ALWAYS_OPEN : NO_CALENDAR;
}

/** Watches the markets of all venues seen so far. */
function createVenueWatch(markets: Markets) {
  const venues = new Map<TradingVenue, MarketNow | undefined>();
  return {
    add(venue: TradingVenue): void {
      if (!venues.has(venue)) venues.set(venue, undefined);
    },
    /** Venues whose market has changed since the last call. */
    changed(nowMs: number): TradingVenue[] {
      const changed: TradingVenue[] = [];
      for (const [venue, before] of venues) {
        const market = markets.at(venue, nowMs);
        if (market === before) continue;
        venues.set(venue, market);
        changed.push(venue);
      }
      return changed;
    },
    /**
     * Whether a market of the known symbols is open, by those that have a calendar for this time;
     * undefined if none has.
     */
    isInSession(nowMs: number): boolean | undefined {
      const states = [...venues.keys()].map((venue) => markets.at(venue, nowMs).state);
      if (states.includes('open')) return true;
      return states.some((state) => state !== 'unknown') ? false : undefined;
    },
  };
}

function isSame(one: Quiet, other: Quiet): boolean {
  return (
    one.reason === other.reason && one.sinceMs === other.sinceMs && one.untilMs === other.untilMs
  );
}
