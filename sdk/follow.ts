import { backoffMs, wait } from './backoff.ts';
import { meaningOf } from './close-codes.ts';
import { createEmitter } from './emitter.ts';
import { asPilloleError, PilloleError } from './error.ts';
import type { ServerFrame } from './frames.ts';
import { createGaps } from './gaps.ts';
import type { StreamItem } from './items.ts';
import { createLedger } from './ledger.ts';
import { type Link, openLink } from './link.ts';
import { createOutlet } from './outlet.ts';
import { parseCursor } from './position.ts';
import type { Rest } from './rest.ts';
import { createSequence } from './sequence.ts';
import { createSession } from './session.ts';
import { STREAM_LIMITS, type Stream, type StreamEvents, type StreamOptions } from './stream.ts';
import { closedError, frameError } from './stream-errors.ts';
import type { Subscription } from './subscribe.ts';
import { createTrack } from './track.ts';
import { wants } from './wants.ts';
import type { WebSocketClass } from './web-socket.ts';

/** Where and as whom to connect; asked for anew before each connection. */
export interface Address {
  readonly url: string;
  readonly key: string | undefined;
}

export interface FollowOptions {
  readonly rest: Rest;
  readonly webSocket: WebSocketClass;
  readonly address: () => Promise<Address>;
}

/** How a connection ended, and when to come back. */
interface Ending {
  readonly error: PilloleError;
  readonly comesBack: boolean;
  /** The server said how long to wait, in ms; `exact`: its jitter is in it. */
  readonly told: { readonly ms: number; readonly exact: boolean } | undefined;
  readonly lasted: boolean;
  /** It got as far as `subscribed`. */
  readonly opened: boolean;
}

/** Opens a stream, and keeps it open until it is closed or refused. */
export function follow(options: FollowOptions, wanted: StreamOptions): Stream {
  const subscription = subscriptionOf(wanted);
  const { bufferMax = STREAM_LIMITS.bufferMax, fillGaps: isFilling = true, resume } = wanted;
  const emitter = createEmitter<StreamEvents>();
  const ledger = createLedger();
  const start = typeof resume === 'string' ? resume : undefined;
  const received = createTrack(start);
  const delivered = createTrack(start);
  const stop = new AbortController();
  let stopFilling = new AbortController();
  let state: Stream['state'] = 'connecting';
  let link: Link | undefined;
  let isPaused = false;
  let reported: PilloleError | undefined;

  const outlet = createOutlet({
    ...{ emitter, received, delivered, conflate: subscription.mode === 'latest', bufferMax },
    onTaken: () => regulate(),
    onReturn: () => finish(undefined),
  });
  const sequence = createSequence((error) => finish(asPilloleError(error, 'frame_malformed')));
  const deliver = (item: StreamItem, advances: boolean) => {
    const cursor = advances && item.type === 'pill' ? parseCursor(item.cursor) : undefined;
    if (cursor !== undefined) received.advance(cursor);
    outlet.deliver(item, cursor);
  };
  const gaps = createGaps({
    ...{ rest: options.rest, ledger, isFilling, room: outlet.room },
    wants: (pill) => wants(subscription, pill),
    signal: () => AbortSignal.any([stop.signal, stopFilling.signal]),
    onPill(pill) {
      ledger.hand(pill);
      deliver({ type: 'pill', ...pill }, false);
    },
    onGap: (gap) => deliver(gap, false),
  });

  /** Stops reading when too much waits for the consumer, and goes on at half of it. */
  const regulate = () => {
    const waiting = outlet.weight + sequence.waiting;
    if (isPaused && waiting <= bufferMax / 2) {
      isPaused = false;
      link?.resume();
    } else if (!isPaused && waiting >= bufferMax && link !== undefined) {
      isPaused = link.pause();
      if (isPaused) return;
      if (outlet.weight >= bufferMax) finish(slowConsumer(bufferMax, received.position()));
      else {
        stopFilling.abort();
        stopFilling = new AbortController();
      }
    }
  };

  const report = (error: PilloleError) => {
    reported = error;
    emitter.emit('error', error);
  };
  const finish = (error: PilloleError | undefined) => {
    if (state === 'closed') return;
    state = 'closed';
    stop.abort();
    link?.close();
    outlet.end(error);
    if (error !== undefined && error !== reported) report(error);
    emitter.emit('closed', { error, position: outlet.position });
  };

  const connect = async (): Promise<Ending> => {
    const { url, key } = await options.address();
    const { promise, resolve } = deferred<Ending>();
    if (state === 'closed') return promise;
    let ended: PilloleError | undefined;
    let told: Ending['told'];
    let settledAt = Number.POSITIVE_INFINITY;
    const session = createSession({
      ...{ subscription, resume: received.position() ?? resume, ledger, track: received, gaps },
      send: (frame) => link?.send(frame),
      onPill: (pill, advances) => deliver({ type: 'pill', ...pill }, advances),
      onSnapshot: (snapshot) => deliver(snapshot, false),
      onPosition(position) {
        received.raise(position);
        outlet.mark(position);
      },
      onOpened(opened) {
        settledAt = performance.now();
        state = 'live';
        emitter.emit('open', opened);
      },
      onError: report,
      onRefused: finish,
      onQuiet: (quiet) => emitter.emit('quiet', quiet),
    });
    const read = (frame: ServerFrame): void | Promise<void> => {
      if (state === 'closed') return;
      const reading = session.read(frame);
      if (frame.type === 'error' && frame.fatal) {
        ended = frameError(frame, received.position());
        const { retryAfterMs: ms } = ended;
        told = ms === undefined ? told : { ms, exact: false };
        report(ended);
      } else if (frame.type === 'drain') {
        told = { ms: frame.reconnect_after_ms, exact: true };
        emitter.emit('drain', frame);
      } else if (frame.type === 'heartbeat') emitter.emit('heartbeat', frame);
      else if (frame.type === 'status') emitter.emit('status', frame);
      return reading;
    };
    isPaused = false;
    link = openLink({
      ...{ url, key, webSocket: options.webSocket },
      onFrame(frame) {
        sequence.run(() => read(frame));
        regulate();
      },
      onDead: (silentMs) => emitter.emit('dead', { silentMs }),
      onClosed(code, reason) {
        link = undefined;
        sequence.run(() => {
          const error = ended ?? closedError(code, reason, received.position());
          const lasted = performance.now() - settledAt >= STREAM_LIMITS.stableMs;
          const opened = settledAt < Number.POSITIVE_INFINITY;
          resolve({ error, comesBack: meaningOf(code).reconnect, told, lasted, opened });
        });
      },
    });
    return promise;
  };

  const run = async () => {
    let unopened = 0;
    for (let attempt = 0; state !== 'closed'; attempt += 1) {
      state = 'connecting';
      const { error, comesBack, told, lasted, opened } = await connect().catch(asEnding);
      if (stop.signal.aborted) return;
      if (!comesBack) return finish(error);
      if (lasted) attempt = 0;
      unopened = opened ? 0 : unopened + 1;
      if (unopened > 0 && unopened % STREAM_LIMITS.unopenedTold === 0) {
        report(unreachable(unopened, error));
      }
      const { reconnectFirstMs, reconnectMaxMs } = STREAM_LIMITS;
      const jitterMs = told?.exact ? 0 : backoffMs(attempt, reconnectFirstMs, reconnectMaxMs);
      const delayMs = Math.round((told?.ms ?? 0) + jitterMs);
      state = 'waiting';
      emitter.emit('reconnecting', { attempt: attempt + 1, delayMs, error });
      await wait(delayMs, stop.signal);
    }
  };
  queueMicrotask(() => void run());

  return {
    on(event, listener) {
      const off = emitter.on(event, listener);
      if (event === 'pill' || event === 'snapshot' || event === 'gap') {
        queueMicrotask(outlet.flow); // listeners that are added in the same breath miss nothing
      }
      return off;
    },
    get position() {
      return outlet.position;
    },
    get state() {
      return state;
    },
    close: () => finish(undefined),
    [Symbol.asyncIterator]: outlet.iterate,
  };
}

function subscriptionOf(wanted: StreamOptions): Subscription {
  const { symbols, mode = 'all', filter, snapshot = true, backfill = false } = wanted;
  const named = typeof symbols === 'string' ? [symbols] : [...new Set(symbols)];
  if (named.length > 0) return { symbols: named, mode, filter, snapshot, backfill };
  throw new PilloleError({ code: 'no_symbols', message: 'Name at least one symbol, or "*".' });
}

/** A ticket that was refused for good ends the stream; else it is one more failed attempt. */
function asEnding(thrown: unknown): Ending {
  const error = asPilloleError(thrown, 'connection_lost');
  return {
    error,
    comesBack: error.retry !== 'never',
    told: undefined,
    lasted: false,
    opened: false,
  };
}

function unreachable(attempts: number, cause: PilloleError): PilloleError {
  const message =
    `The stream was not reached in ${attempts} attempts; it is tried again. ` +
    `Check its address, and that it was not removed. Last: ${cause.message}`;
  return new PilloleError({ code: 'unreachable', message, retry: 'after', cause });
}

function slowConsumer(bufferMax: number, position: string | undefined): PilloleError {
  const message = `${bufferMax} pills wait unread, and this WebSocket cannot be paused.`;
  return new PilloleError({ code: 'slow_consumer', message, retry: 'after', position });
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
