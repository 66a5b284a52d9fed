import { generatorState } from '../../../domain/market/quiet/generator-state.ts';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { createHub, type HubOptions } from '../hub/hub.ts';
import type { Principal } from '../hub/principal.ts';
import { Connection, type ConnectionDeps } from '../hub/stream-connection.ts';
import { LIMITS } from '../limits.ts';
import { createLatestPills } from '../log/latest-pills.ts';
import { createReplayBuffer } from '../log/replay-buffer.ts';
import { SpanLostError } from '../log/span-reader.ts';
import { createResumer, type ResumerDeps } from '../replay/resume.ts';
import { type Codec, isBinaryFrame } from '../wire/codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';
import type { Socket } from '../wire/websocket-server.ts';
import { decodeFrame } from './decode-frame.ts';
import type { Frame } from './stream-client.ts';

const PRINCIPAL: Principal = {
  accountId: 'acc_test',
  tier: 'institutional',
  keyId: 'key_test',
  sessionHash: undefined,
  hint: 'pil_live_…test',
  endsAtMs: Number.POSITIVE_INFINITY,
  connectionsMax: 1,
  symbolsMax: 1_000,
};

const PARTITIONS = [0, 1];
const partitionOf = (symbol: string) => symbol.charCodeAt(symbol.length - 1) % 2;

/** A socket with a window of fixed size; buffered frames arrive later, in order. */
export interface FakeSocket extends Socket {
  readonly frames: Frame[];
  readonly sizes: number[];
  /** Frames that the client expects an answer to. */
  requests: number;
  closed: { code: number; reason: string } | undefined;
  /** Reads this many bytes, and notifies the connection of a drain. */
  read(bytes: number): void;
  connection: Connection | undefined;
}

export function createFakeSocket(windowBytes: number): FakeSocket {
  let inFlight = 0;
  const buffered = () => Math.max(0, inFlight - windowBytes);
  return {
    address: '127.0.0.1',
    frames: [],
    sizes: [],
    requests: 0,
    closed: undefined,
    connection: undefined,
    buffered,
    send(bytes) {
      if (this.closed !== undefined) throw new Error('used after close');
      this.frames.push(decodeFrame(Buffer.from(bytes), isBinaryFrame(bytes)) as Frame);
      this.sizes.push(bytes.length);
      inFlight += bytes.length;
      return buffered() > 0 ? 0 : 1;
    },
    end(code, reason) {
      if (this.closed !== undefined) throw new Error('closed twice');
      this.closed = { code, reason };
    },
    read(bytes) {
      const before = buffered();
      inFlight = Math.max(0, inFlight - bytes);
      if (before > buffered() && this.closed === undefined) this.connection?.drained();
    },
  };
}

/** The model has no log: evicted pills cannot be read. */
const NO_LOG = () => Promise.reject(new SpanLostError('There is no log.'));

/** A hub, its latest pills and a clock of their own, without a log or a network. */
export function createModel(
  limits: Partial<Record<keyof typeof LIMITS, number>> = {},
  onSubscribed: HubOptions['onSubscribed'] = () => undefined,
  readSpans: ResumerDeps['readSpans'] = NO_LOG,
) {
  const queue: { at: number; action: () => void }[] = [];
  let nowMs = 0;
  const latestPills = createLatestPills('e1');
  const all = { ...LIMITS, ...limits };
  const replayBuffer = createReplayBuffer(all.replayBufferPillsMax);
  for (const partition of PARTITIONS) replayBuffer.begin(partition, 0);
  const hub = createHub({
    frameOutBytesMax: limits.frameOutBytesMax ?? LIMITS.frameOutBytesMax,
    nowMicros: () => nowMs * 1000,
    nowMs: () => nowMs,
    schedule: (action, delayMs) => queue.push({ at: nowMs + delayMs, action }),
    onSubscribed,
  });
  const deps: ConnectionDeps = {
    hub,
    latestPills,
    replayBuffer,
    resumer: createResumer({
      ...{ latestPills, replayBuffer, limits: all },
      partitions: () => PARTITIONS,
      offsetsAt: async () => new Map(PARTITIONS.map((partition) => [partition, 0])),
      logStarts: async () => new Map(),
      readSpans,
      onError: () => undefined,
    }),
    partitionOf,
    isInResumeWindow: () => true,
    grant: () => 'granted',
    limits: all,
    nowMicros: () => nowMs * 1000,
    nowMs: () => nowMs,
    later: (action) => queue.push({ at: nowMs, action }),
    generator: (now) =>
      generatorState({ lastReceivedAt: now, lateAfterMs: 5_000, isInSession: true }, now),
    logDown: () => undefined,
    onFault(error) {
      throw error;
    },
    onClosed: () => undefined,
  };
  const log: EffectivePill[] = [];
  const ends = new Map<number, number>();

  return {
    latestPills,
    hub,
    deps,
    log,
    get nowMs() {
      return nowMs;
    },
    connect(windowBytes: number, codec: Codec = JSON_CODEC): FakeSocket {
      const socket = createFakeSocket(windowBytes);
      socket.connection = new Connection(socket, codec, PRINCIPAL, deps);
      socket.connection.opened();
      return socket;
    },
    /** Appends a pill to the log and publishes it. */
    publish(pills: readonly { symbol: string; late?: boolean; backfill?: boolean }[]) {
      const made = pills.map(({ symbol, late = false, backfill = false }) => {
        const partition = partitionOf(symbol);
        const offset = (ends.get(partition) ?? -1) + 1;
        ends.set(partition, offset);
        const row = latestPills.get(symbol);
        const pill: EffectivePill = {
          id: `p${partition}-${offset}`,
          timestamp: offset,
          symbol,
          gross_spread_percent: 0.5,
          market_state: 'open',
          confidence: offset % 10,
          received_at: offset,
          source: null,
          kind: null,
          partition,
          offset,
          order: offset,
          late: late && row !== undefined,
          backfill,
          prev: backfill ? null : (row?.lastOffset ?? null),
          last: backfill ? (row?.lastOffset ?? null) : offset,
        };
        latestPills.advance(partition, offset);
        latestPills.apply(pill);
        replayBuffer.append(pill);
        log.push(pill);
        return pill;
      });
      hub.publish(made);
    },
    /** Advances the clock, and runs the actions that are due. */
    pass(ms: number) {
      const until = nowMs + ms;
      for (;;) {
        const due = queue.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        queue.splice(queue.indexOf(due), 1);
        nowMs = Math.max(nowMs, due.at);
        due.action();
      }
      nowMs = until;
    },
  };
}

export type Model = ReturnType<typeof createModel>;

/** Cursor of a symbol's last live pill at or before an offset of its partition. */
export function lastLiveUntil(
  model: Model,
  symbol: string,
  offset: number,
  withLate: boolean,
): string | null {
  const last = model.log.findLast(
    (pill) =>
      pill.symbol === symbol && !pill.backfill && (withLate || !pill.late) && pill.offset <= offset,
  );
  return last === undefined ? null : formatCursor(last.partition, last.offset);
}
