import type { Place } from '../../../lib/calendar/venue-rules.ts';
import { type Cadences, lateAfterMs } from '../../../lib/signal/cadence.ts';
import type { Markets } from '../../../lib/signal/markets.ts';
import {
  ALWAYS_OPEN,
  judgeSilence,
  type MarketNow,
  NO_CALENDAR,
  type Quiet,
} from '../../../lib/signal/silence.ts';
import { isTestSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';

/** Why a symbol is quiet, or was until its last pill. Times are Unix ms. */
export interface Told extends Quiet {
  readonly symbol: string;
  readonly venue: Place | undefined;
  /** Of `generator_late`. */
  readonly lateAfterMs: number | undefined;
  /** A pill has come at `untilMs`. */
  readonly over: boolean;
}

/** Quiet symbols of one venue with one reason. */
export interface Group {
  readonly venue: Place | undefined;
  /** As its members have it. */
  quiet: Quiet;
  readonly symbols: Set<string>;
}

/** Which symbols are quiet, and why; bounded by the number of symbols. */
export interface QuietWatch {
  /** What was known before the start; changes nothing of a symbol that is known. */
  seed(symbol: string, receivedAt: Micros): void;
  /** A live pill came. Costs the look-up of its symbol. */
  note(symbol: string, receivedAt: Micros): void;
  /** undefined for a symbol that is not quiet, and has not been. */
  toldOf(symbol: string): Told | undefined;
  isKnown(symbol: string): boolean;
  /** Groups that hold a symbol; without test symbols. */
  groups(): Iterable<Group>;
  /**
   * Judges those that may have fallen silent, and those whose market has changed. @param hearing
   * whether pills could come: else a silence says nothing of the generator
   * @returns how many judgements are left for the next turn
   */
  turn(nowMs: number, hearing: boolean): number;
  /** Whether a market of what was seen is open: undefined where no calendar tells. */
  isInSession(nowMs: number): boolean | undefined;
}

export interface QuietWatchOptions {
  readonly cadences: Cadences;
  readonly markets: Markets;
  /** Judgements of one turn, so that none holds the pills up. */
  readonly checksPerTurn: number;
  /** A symbol fell quiet, is so for another reason, or a pill ended it. */
  readonly onChange: (told: Told) => void;
  readonly onGroup: (group: Group) => void;
}

interface Watched {
  readonly symbol: string;
  readonly venue: Place | undefined;
  readonly isTest: boolean;
  /** Of its cadence. */
  readonly slot: number;
  lastAtMs: number;
  told: Told | undefined;
  /** It stands in a bucket, or waits to be judged. */
  armed: boolean;
}

/** A symbol is looked at this often, should its pace have quickened since it was armed. */
const LOOK_MS = 5_000;
/** Where there are more seconds to look through, the buckets are fewer. */
const STEPS_MAX = 3_600;

/**
 * Creates the watch. A symbol that is not quiet stands in the bucket of the second in which it
 * would be late; its pills do not move it there, the judgement does: so a pill costs nothing, and
 * a symbol is looked at once in 5 s. One that is quiet stands in no bucket:
 * a pill or a change of its market wakes it.
 */
export function createQuietWatch(options: QuietWatchOptions): QuietWatch {
  const { cadences, markets, checksPerTurn } = options;
  const watched = new Map<string, Watched>();
  const buckets = new Map<number, Watched[]>();
  const groups = new Map<string, Group>();
  const venues = new Map<Place, MarketNow | undefined>();
  let others = 0;
  const waiting: Watched[] = [];
  let bucketS = Number.NEGATIVE_INFINITY;
  let hearingSinceMs: number | undefined;

  const patienceOf = ({ slot }: Watched) => lateAfterMs(cadences.medianMsAt(slot));
  const marketOf = ({ venue, isTest }: Watched, nowMs: number) => {
    if (venue !== undefined) return markets.at(venue, nowMs);
    return isTest ? ALWAYS_OPEN : NO_CALENDAR;
  };
  const arm = (one: Watched, atMs: number) => {
    if (one.armed) return;
    one.armed = true;
    const second = Math.max(Math.ceil(atMs / 1000), bucketS + 1);
    const bucket = buckets.get(second);
    if (bucket === undefined) buckets.set(second, [one]);
    else bucket.push(one);
  };
  const group = (one: Watched, told: Told, enters: boolean) => {
    if (one.isTest) return;
    const key = `${told.venue ?? ''} ${told.reason}`;
    let found = groups.get(key);
    if (found === undefined) {
      found = { venue: told.venue, quiet: told, symbols: new Set() };
      groups.set(key, found);
    }
    if (enters) {
      // Of those who are late the oldest silence is told; a market's is the same for all of them.
      const isOlder = (found.quiet.sinceMs ?? 0) < (told.sinceMs ?? 0);
      const isKept = found.symbols.size > 0 && told.untilMs === undefined && isOlder;
      if (!isKept) found.quiet = told;
      found.symbols.add(one.symbol);
    } else found.symbols.delete(one.symbol);
    options.onGroup(found);
  };
  const tell = (one: Watched, told: Told) => {
    if (one.told?.over === false) group(one, one.told, false);
    one.told = told;
    if (!told.over) group(one, told, true);
    options.onChange(told);
  };

  const judge = (one: Watched, nowMs: number) => {
    const { lastAtMs, symbol, venue } = one;
    const lateMs = patienceOf(one);
    const market = marketOf(one, nowMs);
    const judged = judgeSilence({ lastAtMs, lateAfterMs: lateMs, market, hearingSinceMs, nowMs });
    if (judged.quiet === undefined) {
      arm(one, Math.min(judged.askAtMs, nowMs + LOOK_MS));
      return;
    }
    const { quiet } = judged;
    if (one.told !== undefined && !one.told.over && isSame(one.told, quiet)) return;
    const patience = quiet.reason === 'generator_late' ? lateMs : undefined;
    const { reason, sinceMs, untilMs } = quiet;
    tell(one, { reason, sinceMs, untilMs, symbol, venue, lateAfterMs: patience, over: false });
  };

  const begin = (symbol: string, lastAtMs: number): Watched => {
    const venue = markets.venueOf(symbol);
    const isTest = isTestSymbol(symbol);
    const slot = cadences.slotOf(symbol);
    const one: Watched = { symbol, venue, isTest, slot, lastAtMs, told: undefined, armed: false };
    watched.set(symbol, one);
    if (venue !== undefined && !venues.has(venue)) venues.set(venue, undefined);
    if (venue === undefined && !isTest) others += 1;
    arm(one, lastAtMs + LOOK_MS);
    return one;
  };
  const wake = (one: Watched) => {
    if (one.armed) return;
    one.armed = true;
    waiting.push(one);
  };
  const collect = (nowMs: number) => {
    for (const [venue, before] of venues) {
      const market = markets.at(venue, nowMs);
      if (market === before) continue;
      venues.set(venue, market);
      for (const { venue: of, symbols } of groups.values()) {
        if (of === venue) for (const symbol of symbols) wake(watched.get(symbol)!);
      }
    }
    const nowS = Math.floor(nowMs / 1000);
    // After a clock was set back all are asked anew.
    if (nowS < bucketS) bucketS = Number.NEGATIVE_INFINITY;
    const take = (second: number) => {
      const bucket = buckets.get(second);
      if (bucket === undefined) return;
      buckets.delete(second);
      for (const one of bucket) waiting.push(one);
    };
    const isAnew = bucketS === Number.NEGATIVE_INFINITY;
    if (nowS - bucketS > STEPS_MAX) {
      for (const second of [...buckets.keys()]) if (isAnew || second <= nowS) take(second);
    } else for (let second = bucketS + 1; second <= nowS; second += 1) take(second);
    bucketS = nowS;
  };

  return {
    isKnown: (symbol) => watched.has(symbol),
    toldOf: (symbol) => watched.get(symbol)?.told,
    seed(symbol, receivedAt) {
      if (watched.has(symbol)) return;
      begin(symbol, receivedAt / 1000);
    },
    note(symbol, receivedAt) {
      const atMs = receivedAt / 1000;
      const one = watched.get(symbol);
      cadences.noteAt(one?.slot ?? cadences.slotOf(symbol), receivedAt);
      if (one === undefined) {
        const fresh = begin(symbol, atMs);
        fresh.told = { ...NEVER, symbol, venue: fresh.venue, untilMs: atMs };
        options.onChange(fresh.told);
        return;
      }
      if (atMs > one.lastAtMs) one.lastAtMs = atMs;
      if (one.told === undefined || one.told.over) return;
      tell(one, { ...one.told, untilMs: atMs, over: true });
      arm(one, atMs + LOOK_MS);
    },
    groups: () => groups.values(),
    turn(nowMs, hearing) {
      // Those who are judged while nobody can hear are asked again when somebody does.
      if (!hearing) hearingSinceMs = nowMs;
      collect(nowMs);
      const turn = waiting.splice(0, checksPerTurn);
      for (const one of turn) {
        one.armed = false;
        judge(one, nowMs);
      }
      return waiting.length;
    },
    isInSession(nowMs) {
      for (const venue of venues.keys()) {
        if (markets.at(venue, nowMs).state === 'open') return true;
      }
      const isTold = others === 0 && venues.size > 0;
      return isTold ? false : undefined;
    },
  };
}

/** What a symbol was before its first pill. */
const NEVER = {
  reason: 'never_seen',
  sinceMs: undefined,
  lateAfterMs: undefined,
  over: true,
} as const;

function isSame(one: Quiet, other: Quiet): boolean {
  return (
    one.reason === other.reason && one.sinceMs === other.sinceMs && one.untilMs === other.untilMs
  );
}
