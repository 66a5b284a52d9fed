import { asPilloleError, PilloleError } from '../error.ts';
import type { RestClient } from '../rest/rest-client.ts';
import type { Socket, WebSocketClass } from './client-socket.ts';
import { createEmitter, type Emitter } from './emitter.ts';
import { createItemOutput, type ItemOutput } from './item-output.ts';
import { createSerialQueue } from './serial-queue.ts';
import { createPositionTracker, type PositionTracker, parseCursor } from './stream-position.ts';
import { type Subscription, subscriptionOf } from './stream-subscription.ts';
import {
  type Resume,
  STREAM_LIMITS,
  type Stream,
  type StreamEvents,
  type StreamItem,
  type StreamOptions,
} from './stream-types.ts';
import { createSymbolChains, type SymbolChains } from './symbol-chains.ts';

/** The address and the credential to connect with. */
export interface StreamAddress {
  readonly url: string;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

export interface StreamDeps {
  readonly rest: RestClient;
  readonly webSocket: WebSocketClass;
  /** Called before each connection, since a ticket or a signature is good for one. */
  readonly address: () => Promise<StreamAddress>;
}

/** The state of one stream, over all of its connections. */
export interface StreamRuntime {
  readonly deps: StreamDeps;
  readonly subscription: Subscription;
  readonly resume: Resume | undefined;
  readonly bufferMax: number;
  readonly reconnectMaxMs: number;
  readonly isFilling: boolean;
  /** Whether a refused symbol ends the stream. */
  readonly throwsRefusals: boolean;
  /** Symbols that were delivered as refused. */
  readonly refused: Set<string>;
  readonly emitter: Emitter<StreamEvents>;
  readonly chains: SymbolChains;
  readonly received: PositionTracker;
  readonly output: ItemOutput;
  /** Frames, one after another: a frame waits while a gap before it is filled. */
  readonly frames: ReturnType<typeof createSerialQueue>;
  readonly stop: AbortController;
  /** Ends the fills that are running; replaced afterwards. */
  stopFilling: AbortController;
  state: Stream['state'];
  socket: Socket | undefined;
  isPaused: boolean;
  /** The last reported error: the error that ends the stream is reported once. */
  reported: PilloleError | undefined;
}

/** @throws PilloleError `no_symbols` */
export function createStreamRuntime(deps: StreamDeps, options: StreamOptions): StreamRuntime {
  const { bufferMax = STREAM_LIMITS.bufferMax, fillGaps: isFilling = true, resume } = options;
  const subscription = subscriptionOf(options);
  const start = typeof resume === 'string' ? resume : undefined;
  const emitter = createEmitter<StreamEvents>();
  const received = createPositionTracker(start);
  const runtime: StreamRuntime = {
    deps,
    subscription,
    resume,
    bufferMax,
    reconnectMaxMs: options.reconnectMaxMs ?? STREAM_LIMITS.reconnectMaxMs,
    isFilling,
    throwsRefusals: options.refusedSymbols !== 'deliver',
    refused: new Set(),
    emitter,
    chains: createSymbolChains(),
    received,
    output: createItemOutput({
      emitter,
      received,
      delivered: createPositionTracker(start),
      conflate: subscription.mode === 'latest',
      bufferMax,
      onTaken: () => regulate(runtime),
      onReturn: () => finish(runtime, undefined),
    }),
    frames: createSerialQueue((error) => finish(runtime, asPilloleError(error, 'frame_malformed'))),
    stop: new AbortController(),
    stopFilling: new AbortController(),
    state: 'connecting',
    socket: undefined,
    isPaused: false,
    reported: undefined,
  };
  return runtime;
}

/**
 * Delivers an item. After the end nothing is delivered, and the position stays: a stored position
 * never includes a pill that the consumer did not get.
 * @param advances whether everything up to the item was received in its partition
 */
export function deliver(runtime: StreamRuntime, item: StreamItem, advances: boolean): void {
  if (runtime.state === 'closed') return;
  const cursor = advances && item.type === 'pill' ? parseCursor(item.cursor) : undefined;
  if (cursor !== undefined) runtime.received.advance(cursor);
  runtime.output.deliver(item, cursor);
}

/** Stops reading when too much waits for the consumer, and continues at half of the bound. */
export function regulate(runtime: StreamRuntime): void {
  const { output, frames, bufferMax, received, socket } = runtime;
  const waiting = output.weight + frames.waiting;
  if (runtime.isPaused && waiting <= bufferMax / 2) {
    runtime.isPaused = false;
    socket?.resume();
  } else if (!runtime.isPaused && waiting >= bufferMax && socket !== undefined) {
    runtime.isPaused = socket.pause();
    if (runtime.isPaused) return;
    if (output.weight >= bufferMax) finish(runtime, slowConsumer(bufferMax, received.position()));
    else {
      runtime.stopFilling.abort();
      runtime.stopFilling = new AbortController();
    }
  }
}

export function reportError(runtime: StreamRuntime, error: PilloleError): void {
  runtime.reported = error;
  runtime.emitter.emit('error', error);
}

/** Ends the stream. @param error why it ended; undefined: the consumer closed it */
export function finish(runtime: StreamRuntime, error: PilloleError | undefined): void {
  if (runtime.state === 'closed') return;
  runtime.state = 'closed';
  runtime.stop.abort();
  runtime.socket?.close();
  runtime.output.end(error);
  if (error !== undefined && error !== runtime.reported) reportError(runtime, error);
  runtime.emitter.emit('closed', { error, position: runtime.output.position });
}

function slowConsumer(bufferMax: number, position: string | undefined): PilloleError {
  const message = `${bufferMax} pills are waiting to be read, and this WebSocket cannot be paused.`;
  return new PilloleError({ code: 'slow_consumer', message, retry: 'after', position });
}
