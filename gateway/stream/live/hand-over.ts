import { formatPosition } from '../../../schemas/position.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { ErrorName } from '../contract/error-codes.ts';
import type { Member } from '../door/member.ts';
import type { Backlog } from '../past/backlog.ts';
import type { Board } from '../past/board.ts';
import { type GapPlace, gapFrames } from '../past/gap.ts';
import type { Reached } from '../past/reached.ts';
import { createReplaySource, planReplay } from '../past/replay.ts';
import { createSnapshot } from '../past/snapshot.ts';
import { chooseRows } from '../past/snapshot-rows.ts';
import { liveFrame, subscribedFrame } from './frames.ts';
import type { Hub } from './hub.ts';
import { faultOfSymbol, type SubscribeFrame } from './protocol.ts';
import type { Seat } from './seat.ts';
import { EVERY_SYMBOL, type Subscription } from './subscription.ts';

/** Between what and what a hand-over happens. */
export interface HandOverPlace extends GapPlace {
  readonly hub: Hub;
  readonly board: Board;
  readonly backlog: Backlog;
  readonly nowMicros: () => Micros;
  readonly limits: {
    readonly symbolsPerConnectionMax: number;
    readonly frameOutBytesMax: number;
    readonly heldRowBytes: number;
    readonly replayPillsMax: number;
  };
}

/**
 * Subscribes a seat: `subscribed`, then the replay or a snapshot, `live`, and from then on new
 * pills. It happens in one turn: what was published before is in the replay or the snapshot, what
 * comes after it is not. Where a resume could not be had, `gap` frames tell what is missing before
 * the snapshot. The hub must be flushed, and the outbox settled; its bound is not checked here.
 */
export function handOver(
  place: HandOverPlace,
  seat: Seat,
  frame: SubscribeFrame,
  reached: Reached,
  member: Pick<Member, 'accountId' | 'symbolsMax'>,
): void {
  const { hub, board, limits } = place;
  const { id, mode, backfill, filter } = frame;
  const symbolsMax = Math.min(member.symbolsMax, limits.symbolsPerConnectionMax);
  const { accepted, rejected } = admit(frame.symbols, seat, symbolsMax);
  const subscription: Subscription = { mode, backfill, filter };
  const wish = { reached, symbols: accepted, named: seat.named, subscription };
  const replay = planReplay(wish, place.backlog, limits.replayPillsMax);
  const position = board.position();
  const seen = (symbol: string) => symbol === EVERY_SYMBOL || board.get(symbol) !== undefined;
  const replaying = replay.recovered === true ? replay.pills.length : 0;
  seat.outbox.push(
    subscribedFrame({
      id,
      accepted,
      rejected,
      never_seen: accepted.filter((symbol) => !seen(symbol)),
      mode,
      recovered: replay.recovered,
      reason: replay.recovered === false ? replay.reason : null,
      ...(replay.recovered === false ? { oldest: oldestPosition(place) } : {}),
      replaying,
      position,
    }),
  );
  for (const symbol of accepted) hub.subscribe(seat, symbol, subscription);
  const { frameOutBytesMax: frameBytesMax, heldRowBytes } = limits;
  if (replay.recovered === true) {
    const { pills, hold } = replay;
    const { codec } = seat;
    const { nowMicros } = place;
    const source = { pills, hold, backfill, codec, nowMicros, frameBytesMax, heldRowBytes };
    if (pills.length > 0) seat.outbox.pushSource(createReplaySource(source), pills.length);
  } else {
    if (replay.recovered === false && frame.resume?.kind === 'position') {
      const missed = { position: frame.resume.position, reason: replay.reason, backfill };
      for (const gap of gapFrames(place, member.accountId, accepted, missed)) seat.outbox.push(gap);
    }
    if (frame.snapshot || replay.recovered === false) {
      const rows = chooseRows(board, accepted, seat.named, subscription);
      seat.outbox.pushSource(
        createSnapshot({ id, rows, backfill, position, frameBytesMax, heldRowBytes }),
      );
    }
  }
  seat.outbox.push(liveFrame(id, replaying, position));
}

/** The oldest position from which everything is held. */
function oldestPosition({ board, backlog }: HandOverPlace): string {
  const offsets = [...backlog.starts].filter(([, start]) => start > 0);
  return formatPosition(board.epoch, new Map(offsets.map(([p, start]) => [p, start - 1])));
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
