import { randomBytes } from 'node:crypto';

/** Makes an id: the prefix, `_` and 12 random characters, e.g. `acc_k3m9x2p7q4ab`. */
export function newId(prefix: string): string {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789'; // 32 letters: 256 is a multiple, so all are equally likely
  return `${prefix}_${[...randomBytes(12)].map((byte) => letters[byte % 32]).join('')}`;
}
