import { meaningOf } from './close-codes.ts';
import { PilloleError } from './error.ts';
import type { ErrorFrame } from './frames.ts';

/** An `error` frame as an error. @param known position that holds when the frame tells none */
export function frameError(frame: ErrorFrame, known: string | undefined): PilloleError {
  const { code, message, close, retry_after_ms: retryAfterMs } = frame;
  const comesBack = close !== undefined && meaningOf(close).reconnect;
  const retry = comesBack || retryAfterMs !== undefined ? 'after' : 'never';
  const position = frame.position ?? known;
  return new PilloleError({ code, message, retry, retryAfterMs, position, closeCode: close });
}

/** A symbol that the server did not accept. */
export function refusedSymbol(symbol: string, code: string): PilloleError {
  return new PilloleError({ code, message: `${JSON.stringify(symbol)} was refused: ${code}.` });
}

/** A close without an `error` frame before it. */
export function closedError(
  closeCode: number,
  reason: string,
  position: string | undefined,
): PilloleError {
  const { name: code, reconnect } = meaningOf(closeCode);
  const message = `The connection ended with ${closeCode}${reason === '' ? '' : `: ${reason}`}.`;
  const retry = reconnect ? 'after' : 'never';
  return new PilloleError({ code, message, retry, position, closeCode });
}
