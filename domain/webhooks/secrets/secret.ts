import { randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const NEW_SECRET_BYTES = 32;
/** Bounds of Standard Webhooks 1.0. */
const BYTES_MIN = 24;
const BYTES_MAX = 64;

/** The text is no webhook secret; the message does not repeat it. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

/** Creates a secret to sign messages with: `whsec_` and the base64 of 32 random bytes. */
export function newSecret(): { text: string; bytes: Buffer } {
  const bytes = randomBytes(NEW_SECRET_BYTES);
  return { text: secretText(bytes), bytes };
}

/** A secret as its owner sees it. */
export function secretText(bytes: Buffer): string {
  return `${PREFIX}${bytes.toString('base64')}`;
}

/**
 * The key inside a secret.
 * @throws SecretError unless it is `whsec_` and the base64 of 24 to 64 bytes
 */
export function secretBytes(text: string): Buffer {
  const bytes = Buffer.from(text.startsWith(PREFIX) ? text.slice(PREFIX.length) : '', 'base64');
  // Buffer.from skips invalid characters: only a text that encodes back to itself is valid.
  if (bytes.length < BYTES_MIN || bytes.length > BYTES_MAX || secretText(bytes) !== text) {
    throw new SecretError(
      `A webhook secret is ${PREFIX} followed by the base64 of ${BYTES_MIN} to ${BYTES_MAX} bytes.`,
    );
  }
  return bytes;
}
