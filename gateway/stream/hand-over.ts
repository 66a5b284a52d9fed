import type { Board } from './board.ts';
import type { ErrorName } from './error-codes.ts';
import { liveFrame, subscribedFrame } from './frames.ts';
import type { Hub } from './hub.ts';
import { faultOfSymbol, type SubscribeFrame } from './protocol.ts';
import { planReplay } from './replay.ts';
import type { Seat } from './seat.ts';
import { createSnapshot } from './snapshot.ts';
import { chooseRows } from './snapshot-rows.ts';
import { EVERY_SYMBOL, type Subscription } from './subscription.ts';

/** Between what and what a hand-over happens. */
export interface HandOverPlace {
  readonly hub: Hub;
  readonly board: Board;
  readonly limits: {
    readonly symbolsPerConnectionMax: number;
    readonly frameOutBytesMax: number;
    readonly heldRowBytes: number;
  };
}

/**
 * Subscribes a seat: `subscribed`, then the replay or a snapshot, `live`, and from then on new
 * pills. It happens in one turn: what was published before is in the snapshot, what comes after it
 * is not. The hub must be flushed, and the outbox settled; its bound is not checked here.
 */
export function handOver({ hub, board, limits }: HandOverPlace, seat: Seat, frame: SubscribeFrame) {
  const { id, mode, backfill, filter } = frame;
  const { accepted, rejected } = admit(frame.symbols, seat, limits.symbolsPerConnectionMax);
  const replay = planReplay(frame.resume, board);
  const position = board.position();
  const seen = (symbol: string) => symbol === EVERY_SYMBOL || board.get(symbol) !== undefined;
  const replaying = replay.recovered === true ? replay.count : 0;
  seat.outbox.push(
    subscribedFrame({
      id,
      accepted,
      rejected,
      never_seen: accepted.filter((symbol) => !seen(symbol)),
      mode,
      recovered: replay.recovered,
      reason: replay.recovered === false ? replay.reason : null,
      replaying,
      position,
    }),
  );
  const subscription: Subscription = { mode, backfill, filter };
  for (const symbol of accepted) hub.subscribe(seat, symbol, subscription);
  if (replay.recovered === true) {
    if (replay.frames !== undefined) seat.outbox.pushSource(replay.frames);
  } else if (frame.snapshot || replay.recovered === false) {
    const rows = chooseRows(board, accepted, seat.named, subscription);
    const { frameOutBytesMax: frameBytesMax, heldRowBytes } = limits;
    seat.outbox.pushSource(
      createSnapshot({ id, rows, backfill, position, frameBytesMax, heldRowBytes }),
    );
  }
  seat.outbox.push(liveFrame(id, replaying, position));
}

/** Sorts out symbols that are none, and those beyond the bound of named ones. */
function admit(symbols: readonly string[], { named }: Seat, namedMax: number) {
  const accepted: string[] = [];
  const rejected: { symbol: string; code: ErrorName }[] = [];
  let count = named.size;
  for (const symbol of symbols) {
    const fault = faultOfSymbol(symbol);
    const isNew = symbol !== EVERY_SYMBOL && !named.has(symbol);
    if (fault !== undefined) rejected.push({ symbol: symbol.toWellFormed(), code: fault });
    else if (isNew && count >= namedMax) rejected.push({ symbol, code: 'symbol_limit' });
    else {
      if (isNew) count += 1;
      accepted.push(symbol);
    }
  }
  return { accepted, rejected };
}
