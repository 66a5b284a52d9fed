import { createHash, randomBytes } from 'node:crypto';

/** Makes a token of 256 random bits for cookies and mails; tables hold only its hash. */
export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/** The hash that is stored instead of a token. Random bits need no slow hash. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
