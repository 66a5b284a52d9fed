import { randomBytes } from 'node:crypto';

/** Makes an id such as `acc_` and 12 random characters. */
export function newId(prefix: string): string {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789'; // 32: a byte's lower bits choose evenly
  return `${prefix}_${[...randomBytes(12)].map((byte) => letters[byte % 32]).join('')}`;
}
