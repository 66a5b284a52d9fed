import { asPilloleError, PilloleError } from '../error.ts';
import { retryDelayMs, wait } from '../rest/retry-delay.ts';
import { openSocket } from './client-socket.ts';
import { createSession, readFrame, type Session } from './session.ts';
import { closedError, mayReconnect } from './stream-errors.ts';
import {
  createStreamRuntime,
  finish,
  regulate,
  reportError,
  type StreamDeps,
  type StreamRuntime,
} from './stream-runtime.ts';
import { STREAM_LIMITS, type Stream, type StreamItem, type StreamOptions } from './stream-types.ts';

/** A listener of one of these receives the items that have waited. */
const ITEM_EVENTS: ReadonlySet<string> = new Set<StreamItem['type']>([
  'pill',
  'snapshot',
  'gap',
  'refused',
]);

/** How a connection ended. */
interface Ending {
  readonly error: PilloleError;
  readonly mayReconnect: boolean;
  readonly serverDelay: Session['serverDelay'];
  /** The connection was live long enough to reset the back-off. */
  readonly lasted: boolean;
  readonly opened: boolean;
}

/**
 * Opens a stream that reconnects until it is closed or refused.
 * @throws PilloleError `no_symbols`
 */
export function openStream(deps: StreamDeps, options: StreamOptions): Stream {
  const runtime = createStreamRuntime(deps, options);
  const { emitter, output } = runtime;
  queueMicrotask(() => void keepConnected(runtime));
  return {
    on(event, listener) {
      const off = emitter.on(event, listener);
      if (ITEM_EVENTS.has(event)) {
        queueMicrotask(output.flow); // listeners that are added in the same turn miss nothing
      }
      return off;
    },
    get position() {
      return output.position;
    },
    get state() {
      return runtime.state;
    },
    close: () => finish(runtime, undefined),
    [Symbol.asyncIterator]: output.iterate,
  };
}

/** Connects again after every end until the stream is closed or refused. */
async function keepConnected(runtime: StreamRuntime): Promise<void> {
  const { emitter, stop, reconnectMaxMs } = runtime;
  const { reconnectFirstMs, unopenedTold } = STREAM_LIMITS;
  let unopened = 0;
  let hasOpened = false;
  for (let attempt = 0; runtime.state !== 'closed'; attempt += 1) {
    runtime.state = 'connecting';
    const ending = await connect(runtime).catch(endingOfError);
    const { error, serverDelay } = ending;
    if (stop.signal.aborted) return;
    hasOpened ||= ending.opened;
    // A proxy may answer so for a while, but not where no stream was ever open.
    const isElsewhere = error.code === 'not_pillole' && !hasOpened;
    if (!ending.mayReconnect || isElsewhere) return finish(runtime, error);
    if (ending.lasted) attempt = 0;
    unopened = ending.opened ? 0 : unopened + 1;
    if (unopened > 0 && unopened % unopenedTold === 0) {
      reportError(runtime, unreachable(unopened, error));
    }
    const jitterMs = serverDelay?.exact
      ? 0
      : retryDelayMs(attempt, Math.min(reconnectFirstMs, reconnectMaxMs), reconnectMaxMs);
    const delayMs = Math.round((serverDelay?.ms ?? 0) + jitterMs);
    runtime.state = 'waiting';
    emitter.emit('reconnecting', { attempt: attempt + 1, delayMs, error });
    await wait(delayMs, stop.signal);
  }
}

/** Opens one connection. @returns its end; never, if the stream itself is closed */
async function connect(runtime: StreamRuntime): Promise<Ending> {
  const { deps, frames, emitter, received } = runtime;
  const { url, key, headers } = await deps.address();
  return new Promise((resolve) => {
    if (runtime.state === 'closed') return;
    const session = createSession(runtime);
    const endingOf = (code: number, reason: string): Ending => ({
      error: session.fatal ?? closedError(code, reason, received.position()),
      mayReconnect: mayReconnect(code),
      serverDelay: session.serverDelay,
      lasted: performance.now() - session.liveSince >= STREAM_LIMITS.stableMs,
      opened: session.liveSince < Number.POSITIVE_INFINITY,
    });
    runtime.isPaused = false;
    runtime.socket = openSocket({
      url,
      key,
      headers,
      webSocket: deps.webSocket,
      onFrame(frame) {
        frames.run(() => readFrame(session, frame));
        regulate(runtime);
      },
      onDead: (silentMs) => emitter.emit('dead', { silentMs }),
      onClosed(code, reason) {
        runtime.socket = undefined;
        frames.run(() => resolve(endingOf(code, reason)));
      },
    });
  });
}

/** A credential that was refused for good ends the stream; any other error is one failed attempt. */
function endingOfError(thrown: unknown): Ending {
  const error = asPilloleError(thrown, 'connection_lost');
  return {
    error,
    mayReconnect: error.retry !== 'never',
    serverDelay: undefined,
    lasted: false,
    opened: false,
  };
}

function unreachable(attempts: number, cause: PilloleError): PilloleError {
  const message =
    `The stream could not be opened in ${attempts} attempts; the client keeps trying. ` +
    `Check the address, and that the stream was not removed. Last error: ${cause.message}`;
  return new PilloleError({ code: 'unreachable', message, retry: 'after', cause });
}
