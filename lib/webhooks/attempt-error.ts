/** Why no complete answer came, in one word for programs and logs. */
export type FailureReason =
  | 'url_refused'
  | 'address_refused'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'stopped';

/** An attempt that failed; the message is a sentence for the customer that says what to do. */
export class AttemptError extends Error {
  override readonly name = 'AttemptError';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Names what the HTTP client threw on a connection that stood. */
export function exchangeError(hostname: string, error: unknown): AttemptError {
  if (error instanceof AttemptError) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_INVALID_ARG') {
    return new AttemptError(
      'protocol',
      'A header of the endpoint cannot be sent. Check its name and value.',
    );
  }
  const isReset =
    ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(code) ||
    (code === 'UND_ERR_SOCKET' && !message.startsWith('bad '));
  if (isReset) {
    return new AttemptError(
      'reset',
      `${hostname} closed the connection before its answer was complete. Look in its log.`,
    );
  }
  return new AttemptError(
    'protocol',
    `${hostname} did not answer in proper HTTP/1.1 (${code || 'unknown fault'}).`,
  );
}
