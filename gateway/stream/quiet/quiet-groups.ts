import type { TradingVenue } from '../../../domain/market/calendars/venue-rules.ts';
import type { Quiet } from '../../../domain/market/quiet/silence.ts';

/** Why a symbol is quiet, or was until its last pill. Times are Unix ms. */
export interface QuietState extends Quiet {
  readonly symbol: string;
  readonly venue: TradingVenue | undefined;
  /** Set for `generator_late`. */
  readonly lateAfterMs: number | undefined;
  /** A pill arrived at `untilMs`. */
  readonly over: boolean;
}

/** Quiet symbols of one venue with one reason. */
export interface QuietGroup {
  readonly venue: TradingVenue | undefined;
  /** The quiet period of its symbols; of late symbols the longest. */
  quiet: Quiet;
  readonly symbols: Set<string>;
}

/** Creates the groups, which `*` subscribers get as summaries. */
export function createQuietGroups(onGroup: (group: QuietGroup) => void) {
  const groups = new Map<string, QuietGroup>();
  const groupOf = (state: QuietState): QuietGroup => {
    const key = `${state.venue ?? ''} ${state.reason}`;
    let group = groups.get(key);
    if (group === undefined) {
      group = { venue: state.venue, quiet: state, symbols: new Set() };
      groups.set(key, group);
    }
    return group;
  };
  return {
    /** Groups that contain or contained a symbol; without test symbols. */
    all: (): Iterable<QuietGroup> => groups.values(),
    add(state: QuietState): void {
      const group = groupOf(state);
      // Late symbols report the oldest silence; a market's state is the same for all its symbols.
      const isOlder = (group.quiet.sinceMs ?? 0) < (state.sinceMs ?? 0);
      const isKept = group.symbols.size > 0 && state.untilMs === undefined && isOlder;
      if (!isKept) group.quiet = state;
      group.symbols.add(state.symbol);
      onGroup(group);
    },
    remove(state: QuietState): void {
      const group = groupOf(state);
      group.symbols.delete(state.symbol);
      onGroup(group);
    },
    *symbolsAt(venue: TradingVenue): Iterable<string> {
      for (const group of groups.values()) if (group.venue === venue) yield* group.symbols;
    },
  };
}
