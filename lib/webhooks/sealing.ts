import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** Makes what the database holds of secrets and of customers' headers unreadable without the pepper. */
export interface Seal {
  /** @param owner id of the endpoint: opened for another one, the text does not open */
  seal(plain: Buffer, owner: string): Buffer;
  /** @throws SealError */
  open(sealed: Buffer, owner: string): Buffer;
}

/** What was sealed is damaged, of another owner, or of another pepper. */
export class SealError extends Error {
  override readonly name = 'SealError';
}

const INFO = 'pillole webhook secrets v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** First byte, so that another way of sealing can be told from this one. */
const VERSION = 1;
/** NIST SP 800-38D: random nonces of 96 bits serve 2^32 texts of one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

/** AES-256-GCM under a key that HKDF-SHA256 makes of the pepper. Layout: version, nonce, tag, text. */
export function createSeal(pepper: Buffer): Seal {
  const key = Buffer.from(hkdfSync('sha256', pepper, Buffer.alloc(0), INFO, KEY_BYTES));
  return {
    seal(plain, owner) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(owner, 'utf8'));
      const text = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), text]);
    },
    open(sealed, owner) {
      if (sealed.length < HEAD_BYTES || sealed[0] !== VERSION)
        throw new SealError(notOpened(owner));
      const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(owner, 'utf8'));
      decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
      } catch {
        throw new SealError(notOpened(owner));
      }
    },
  };
}

function notOpened(owner: string): string {
  return (
    `What is sealed for ${owner} does not open: it is damaged or was sealed with another pepper. ` +
    'Start with the KEY_PEPPER_FILE that it was made with, or rotate the secret.'
  );
}
