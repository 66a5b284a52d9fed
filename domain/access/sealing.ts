import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Pepper } from './pepper.ts';

export type Seal = ReturnType<typeof createSeal>;

/** The sealed text is damaged, or was sealed for another owner or with another pepper. */
export class SealError extends Error {
  override readonly name = 'SealError';
}

const INFO = 'pillole webhook secrets v1';
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** The first byte is the version of the pepper. */
const VERSION_BYTES = 1;
/** NIST SP 800-38D: random nonces of 96 bits serve 2^32 texts of one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = VERSION_BYTES + NONCE_BYTES + TAG_BYTES;

/**
 * Encrypts secrets and customers' headers for the database, by AES-256-GCM under a key that
 * HKDF-SHA256 derives from the pepper. Layout: version of the pepper, nonce, tag, text.
 */
export function createSeal(pepper: Pepper) {
  const keys = new WeakMap<Buffer, Buffer>();
  const keyOf = (bytes: Buffer) => {
    const key =
      keys.get(bytes) ?? Buffer.from(hkdfSync('sha256', bytes, Buffer.alloc(0), INFO, KEY_BYTES));
    keys.set(bytes, key);
    return key;
  };
  return {
    /** @param owner id of the row, e.g. of an endpoint or scheme; the text opens for no other owner */
    seal(plain: Buffer, owner: string): Buffer {
      const { version, bytes } = pepper.current();
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, keyOf(bytes), nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(owner, 'utf8'));
      const text = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.of(version), nonce, cipher.getAuthTag(), text]);
    },
    /** @throws SealError */
    open(sealed: Buffer, owner: string): Buffer {
      const used = pepper.all().find(({ version }) => version === sealed[0]);
      if (used === undefined || sealed.length < HEAD_BYTES) throw notOpened(owner);
      const nonce = sealed.subarray(VERSION_BYTES, VERSION_BYTES + NONCE_BYTES);
      const key = keyOf(used.bytes);
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(owner, 'utf8'));
      decipher.setAuthTag(sealed.subarray(VERSION_BYTES + NONCE_BYTES, HEAD_BYTES));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
      } catch {
        throw notOpened(owner);
      }
    },
  };
}

function notOpened(owner: string): SealError {
  return new SealError(
    `Sealed data of ${owner} cannot be opened: it is damaged or was sealed with another pepper. ` +
      'Start with a KEY_PEPPER_FILE that holds the version that sealed it, or rotate the secret.',
  );
}
