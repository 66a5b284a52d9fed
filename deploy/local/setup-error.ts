/** An end the user can do something about: one sentence, no stack. */
export class SetupError extends Error {
  override readonly name = 'SetupError';
}
