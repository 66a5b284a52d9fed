import { PilloleError } from '../error.ts';
import { CLOSE_NAMES, type ErrorFrame, type Subscribed } from './stream-frames.ts';

/** 1007 bad UTF-8, 1009 too large: a frame of the client was refused, and would be again. */
const CLIENT_FAULTS: ReadonlySet<number> = new Set([1007, 1009]);

/** Whether to reconnect after a close: codes from 4500 on end the stream, 40xx do not. */
export function mayReconnect(closeCode: number): boolean {
  return !(CLIENT_FAULTS.has(closeCode) || (closeCode >= 4500 && closeCode <= 4999));
}

/** An `error` frame as an error. @param position used if the frame has none */
export function frameError(frame: ErrorFrame, position: string | undefined): PilloleError {
  const { code, message } = frame;
  if (!frame.fatal) return new PilloleError({ code, message, position });
  const { close: closeCode, retry_after_ms: retryAfterMs } = frame;
  const retry = mayReconnect(closeCode) || retryAfterMs !== undefined ? 'after' : 'never';
  return new PilloleError({
    code,
    message,
    retry,
    retryAfterMs,
    position: frame.position ?? position,
    closeCode,
  });
}

/** The symbols that the server did not accept, with the code of the first. */
export function refusedSymbols(rejected: Subscribed['rejected']): PilloleError {
  const refusals = rejected.map(({ symbol, code }) => `${JSON.stringify(symbol)} (${code})`);
  const message =
    `The platform refused ${refusals.join(', ')}. Correct or remove these symbols, or stream the ` +
    "others with refusedSymbols: 'deliver'.";
  return new PilloleError({ code: rejected[0]!.code, message });
}

/** A close without a preceding `error` frame. */
export function closedError(
  closeCode: number,
  reason: string,
  position: string | undefined,
): PilloleError {
  // `ws` reports the status of an answer that is no handshake; browsers do not.
  const [, status] = /^Unexpected server response: (4\d\d)$/.exec(reason) ?? [];
  if (status !== undefined && status !== '408' && status !== '429') {
    const message =
      `No stream of pillole is at this address: it answers HTTP ${status}. Check the address and ` +
      'its port; the stream has port 8082 by default.';
    return new PilloleError({ code: 'not_pillole', message, retry: 'after', position, closeCode });
  }
  const unnamed = closeCode === 1006 ? 'connection_lost' : `closed_${closeCode}`;
  const code = CLOSE_NAMES[closeCode] ?? unnamed;
  const message = `The connection ended with ${closeCode}${reason === '' ? '' : `: ${reason}`}.`;
  const retry = mayReconnect(closeCode) ? 'after' : 'never';
  return new PilloleError({ code, message, retry, position, closeCode });
}
