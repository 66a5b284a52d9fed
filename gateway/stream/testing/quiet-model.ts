import type { EffectivePill } from '../../../lib/order/judge.ts';
import { createMarkets } from '../../../lib/signal/markets.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { LIMITS } from '../limits.ts';
import { createQuiet, type QuietTeller } from '../quiet/quiet.ts';
import { type FrameOf, framesOf } from './client.ts';
import { faultOfFrame } from './frame-check.ts';
import { createModel, type FakeSocket } from './model.ts';

export type QuietFrame = FrameOf<'quiet'>;

/** Connections, and a teller of what is quiet, on a clock that begins at a time of the wall. */
export function createQuietModel(start: string, limits: Partial<typeof LIMITS> = {}) {
  const startMs = Date.parse(start);
  const model = createModel({}, (seat, symbol) => quiet.onSubscribed(seat, symbol));
  const markets = createMarkets();
  const turns: (() => void)[] = [];
  const offsets = new Map<string, number>();
  let isHearing = true;
  const sockets = new Set<FakeSocket>();
  const nowMs = () => startMs + model.nowMs;
  const quiet: QuietTeller = createQuiet({
    markets,
    symbolsMax: 100_000,
    limits: { ...LIMITS, ...limits },
    nowMicros: () => nowMs() * 1000,
    schedule: (turn) => turns.push(turn),
    isHearing: () => isHearing,
    seatsNaming: model.hub.seatsNaming,
    starSeats: model.hub.starSeats,
    tellAll(frame) {
      for (const { connection, closed } of sockets) {
        if (closed === undefined) connection!.tell(frame);
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

  /** Runs the turns that wait, and those that they ask for. */
  const settle = () => {
    while (turns.length > 0) turns.shift()!();
  };
  /** Lets time pass in seconds, with what happens in each. */
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
    hear(hears: boolean) {
      isHearing = hears;
    },
    publish(symbols: readonly string[], { backfill = false } = {}) {
      const pills = symbols.map((symbol) => pillOf(symbol, backfill));
      quiet.note(pills);
      model.hub.publish(pills);
      model.hub.flush();
    },
    settle,
    pass,
    /** Lets time pass until a time of the wall; whole seconds. */
    passUntil: (time: string) => pass(Math.round((Date.parse(time) - nowMs()) / 1000)),
  };
}

/** The `quiet` frames of a socket on symbols and sums; each must have the documented form. */
export function quietsOf(socket: FakeSocket): QuietFrame[] {
  return allQuiets(socket).filter(({ reason }) => reason !== 'generator_silent');
}

/** Those on the generator as a whole. */
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

/** A model in which one client has subscribed to these, at this time. */
export function subscribed(start: string, symbols: readonly string[], fields: object = {}) {
  const model = createQuietModel(start);
  const socket = model.connect();
  model.send(socket, { op: 'subscribe', symbols, snapshot: false, ...fields });
  model.settle();
  return { ...model, socket };
}
