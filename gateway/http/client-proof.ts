import type { Proof } from '../../domain/authentication/authenticator.ts';
import type { SignedMessage } from '../../domain/authentication/signature-input.ts';

/** `mixed`: a request must carry one credential, since a proxy in front might read another. */
export type ClientProof = Proof | { readonly kind: 'mixed' };

/** Three parts of base64url; a token of another kind, such as a generator's, is not a JWT. */
const BEARER_JWT = /^bearer +(eyJ[\w-]*\.[\w-]*\.[\w-]*)$/i;

/**
 * Reads the signature or token of a request, which stands in place of a key; undefined = none. The
 * address that a signature covers begins with the configured public address of the service, never
 * with what a header of the client says.
 */
export function readClientProof(message: SignedMessage): ClientProof | undefined {
  let isSigned = false;
  let hasKey = false;
  const authorizations: string[] = [];
  for (const [name, value] of message.headers) {
    if (name === 'signature' || name === 'signature-input') isSigned = true;
    else if (name === 'x-api-key') hasKey = true;
    else if (name === 'authorization') authorizations.push(value);
  }
  const tokens = authorizations.flatMap((value) => BEARER_JWT.exec(value.trim())?.[1] ?? []);
  if (!isSigned && tokens.length === 0) return undefined;
  const isMixed = hasKey || (isSigned ? tokens.length > 0 : authorizations.length > 1);
  if (isMixed) return { kind: 'mixed' };
  return isSigned ? { kind: 'signature', message } : { kind: 'token', token: tokens[0]! };
}

/** Pairs of Node's `rawHeaders`, with names in lower case. */
export function headerPairs(rawHeaders: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    pairs.push([rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!]);
  }
  return pairs;
}

/** The URL that a client has opened. @param base public address, perhaps with a path prefix */
export function publicTarget(base: string, target: string): string {
  return base.replace(/\/$/, '') + target;
}
