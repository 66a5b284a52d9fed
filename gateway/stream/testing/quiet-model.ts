import { createMarkets } from '../../../domain/market/quiet/markets.ts';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { LIMITS } from '../limits.ts';
import { createQuiet, type QuietNotices } from '../quiet/quiet.ts';
import { faultOfFrame } from './frame-check.ts';
import { createModel, type FakeSocket } from './model.ts';
import { type FrameOf, framesOf } from './stream-client.ts';

export type QuietFrame = FrameOf<'quiet'>;

/** Connections and quiet notices, on a clock that starts at a given time. */
export function createQuietModel(start: string, limits: Partial<typeof LIMITS> = {}) {
  const startMs = Date.parse(start);
  const model = createModel({}, (subscriber, symbol) => quiet.onSubscribed(subscriber, symbol));
  const markets = createMarkets();
  const turns: (() => void)[] = [];
  const offsets = new Map<string, number>();
  let isReceiving = true;
  const sockets = new Set<FakeSocket>();
  const nowMs = () => startMs + model.nowMs;
  const quiet: QuietNotices = createQuiet({
    markets,
    symbolsMax: 100_000,
    limits: { ...LIMITS, ...limits },
    nowMicros: () => nowMs() * 1000,
    schedule: (turn) => turns.push(turn),
    isReceiving: () => isReceiving,
    subscribersNaming: model.hub.subscribersNaming,
    wildcardSubscribers: model.hub.wildcardSubscribers,
    broadcast(frame) {
      for (const { connection, closed } of sockets) {
        if (closed === undefined) connection!.send(frame);
      }
    },
  });

  const pillOf = (symbol: string, backfill: boolean): EffectivePill => {
    const offset = (offsets.get(symbol) ?? -1) + 1;
    offsets.set(symbol, offset);
    const at = nowMs() * 1000;
    return {
      ...{ id: `${symbol}-${offset}`, timestamp: at, symbol, received_at: at, order: at },
      ...{ gross_spread_percent: 0.5, market_state: 'open', confidence: offset % 10 },
      ...{ source: null, kind: null, partition: 0, offset, late: false, backfill },
      ...{ prev: offset === 0 ? null : offset - 1, last: offset },
    };
  };

  /** Runs the waiting turns, and the turns that they request. */
  const settle = () => {
    while (turns.length > 0) turns.shift()!();
  };
  /** Advances the clock by seconds, with an action in each. */
  const pass = (seconds: number, inEach: (second: number) => void = () => undefined) => {
    for (let second = 0; second < seconds; second += 1) {
      inEach(second);
      model.pass(1_000);
      quiet.tick();
      settle();
    }
  };

  return {
    model,
    quiet,
    markets,
    turns,
    nowMs,
    now: () => formatTimestamp(nowMs() * 1000),
    generator: () => quiet.generator(nowMs() * 1000),
    connect(windowBytes = 1e12) {
      const socket = model.connect(windowBytes);
      sockets.add(socket);
      return socket;
    },
    send(socket: FakeSocket, frame: object) {
      socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
    },
    setReceiving(value: boolean) {
      isReceiving = value;
    },
    publish(symbols: readonly string[], { backfill = false } = {}) {
      const pills = symbols.map((symbol) => pillOf(symbol, backfill));
      quiet.note(pills);
      model.hub.publish(pills);
      model.hub.flush();
    },
    settle,
    pass,
    /** Advances the clock to a time; whole seconds. */
    passUntil: (time: string) => pass(Math.round((Date.parse(time) - nowMs()) / 1000)),
  };
}

/** The `quiet` frames of a socket about symbols and summaries; each must match its schema. */
export function quietsOf(socket: FakeSocket): QuietFrame[] {
  return allQuiets(socket).filter(({ reason }) => reason !== 'generator_silent');
}

/** The `quiet` frames about the generator as a whole. */
export function silencesOf(socket: FakeSocket): QuietFrame[] {
  return allQuiets(socket).filter(({ reason }) => reason === 'generator_silent');
}

function allQuiets(socket: FakeSocket): QuietFrame[] {
  const quiets = framesOf(socket.frames, 'quiet');
  for (const frame of quiets) {
    const fault = faultOfFrame(frame);
    if (fault !== undefined) throw new Error(fault);
  }
  return quiets;
}

/** A model with one client that has subscribed to these symbols. */
export function subscribed(start: string, symbols: readonly string[], fields: object = {}) {
  const model = createQuietModel(start);
  const socket = model.connect();
  model.send(socket, { op: 'subscribe', symbols, snapshot: false, ...fields });
  model.settle();
  return { ...model, socket };
}
