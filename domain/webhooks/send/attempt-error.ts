/** Why there was no complete answer, in one word for programs and logs. */
export type FailureReason =
  | 'url_refused'
  | 'address_refused'
  | 'dns'
  | 'connect'
  | 'egress_refused'
  | 'egress_down'
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

/** Turns an error of the HTTP client on an open connection into an AttemptError. */
export function exchangeError(hostname: string, error: unknown): AttemptError {
  if (error instanceof AttemptError) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_INVALID_ARG') {
    return new AttemptError(
      'protocol',
      'A custom header of the endpoint cannot be sent. Check its name and value.',
    );
  }
  const isReset =
    ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(code) ||
    (code === 'UND_ERR_SOCKET' && !message.startsWith('bad '));
  if (isReset) {
    return new AttemptError(
      'reset',
      `${hostname} closed the connection before its answer was complete. Check the log of the server.`,
    );
  }
  return new AttemptError(
    'protocol',
    `${hostname} did not answer in valid HTTP/1.1 (${code || 'unknown error'}).`,
  );
}
