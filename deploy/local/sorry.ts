/** An end the user can do something about: one sentence, no stack. */
export class Sorry extends Error {
  override readonly name = 'Sorry';
}
