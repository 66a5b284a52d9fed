let token: string | undefined;

/**
 * Moves the token of a mail's link from the address into memory. It is in the fragment, which
 * browsers send to no server, and does not stay in the history.
 */
export function takeMailToken(): void {
  const found = /^#([\w-]{43})$/.exec(location.hash);
  if (found === null) return;
  token = found[1];
  history.replaceState(history.state, '', location.pathname);
}

/** The token of the link that opened the console, if any. */
export function mailToken(): string | undefined {
  return token;
}
