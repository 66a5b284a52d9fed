/** A failure that the user can fix; the message is one sentence, shown without a stack trace. */
export class SetupError extends Error {
  override readonly name = 'SetupError';
}
