import { openOverridesFile } from '../../../lib/calendar/overrides-file.ts';
import type { VenueOf } from '../../../lib/calendar/venue-rules.ts';
import type { Life } from '../../../lib/run.ts';
import { openMarkets } from '../../../lib/signal/open-markets.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { createChaos } from '../chaos/chaos.ts';
import { CHAOS_SYMBOL } from '../chaos/chaos-schedule.ts';
import { LIMITS } from '../limits.ts';
import type { Connection } from '../live/connection.ts';
import type { Hub } from '../live/hub.ts';
import type { Board } from '../past/board.ts';
import { createQuiet, type QuietTeller } from './quiet.ts';

/** What a client hears beside the pills of the log. */
export interface OpenQuiet extends QuietTeller {
  /** Takes what the board knows, and begins to tell. Once, when the feed is open. */
  begin(board: Board): void;
}

export interface OpenQuietOptions {
  readonly life: Life;
  readonly hub: Hub;
  readonly connections: () => Iterable<Connection>;
  readonly settings: { readonly symbols_max: number; readonly partitions: number };
  /** See lib/calendar/overrides-file.ts. */
  readonly overridesPath: string | undefined;
  readonly venueOf: VenueOf;
  readonly nowMicros: () => Micros;
  /** Whether pills can come: the log is there, and read to its end. */
  readonly isHearing: () => boolean;
}

const QUIET_TICK_MS = 1_000;
const CHAOS_TICK_MS = 100;

/**
 * Opens the teller of quiet symbols and the player of `TEST:CHAOS`, with their timers.
 * @throws Error when the overrides cannot be read.
 */
export function openQuiet(options: OpenQuietOptions): OpenQuiet {
  const { life, hub, connections, settings, nowMicros, overridesPath } = options;
  const overrides = openOverridesFile(overridesPath, life.log);
  const markets = openMarkets(overrides, options.venueOf, life);
  const quiet = createQuiet({
    ...{ markets, nowMicros, limits: LIMITS, isHearing: options.isHearing },
    symbolsMax: settings.symbols_max,
    schedule: (turn, delayMs) =>
      void (delayMs < 1 ? setImmediate(turn) : setTimeout(turn, delayMs)),
    seatsNaming: (symbol) => (symbol === CHAOS_SYMBOL ? [] : hub.seatsNaming(symbol)),
    starSeats: hub.starSeats,
    tellAll(frame) {
      hub.flush();
      for (const connection of [...connections()]) connection.tell(frame);
    },
  });
  return {
    ...quiet,
    onSubscribed(seat, symbol) {
      if (symbol !== CHAOS_SYMBOL) quiet.onSubscribed(seat, symbol);
    },
    begin(board) {
      const { partitions: partition } = settings;
      const chaos = createChaos({ hub, partition, connections, nowMicros });
      quiet.seed(board);
      // Builds the calendars of all that was seen, some 10 ms each, before there are clients.
      quiet.generator(nowMicros());
      const timers = [
        setInterval(quiet.tick, QUIET_TICK_MS),
        setInterval(chaos.tick, CHAOS_TICK_MS),
      ];
      life.onStop('quiet', () => timers.forEach(clearInterval));
    },
  };
}
