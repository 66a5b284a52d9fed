import { createHmac, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Pepper } from './pepper.ts';

/** Base 62: a double click selects the whole key, and no character needs escaping. */
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
export const KEY_PREFIX = 'pil_live_';
/** 62^32 > 2^190. */
const RANDOM_LENGTH = 32;
/** 62^6 > 2^32, the range of CRC-32. */
const CHECKSUM_LENGTH = 6;
const FORM = new RegExp(
  `^${KEY_PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH}}_[0-9A-Za-z]{${CHECKSUM_LENGTH}}$`,
);

/** Makes a key: `pil_live_<32 random>_<checksum>`. It is shown once and never stored. */
export function newKey(): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => LETTERS[randomInt(62)]).join('');
  const body = `${KEY_PREFIX}${random}`;
  return `${body}_${checksum(body)}`;
}

/**
 * Whether a text has the form and checksum of a key, so that typing errors and scanners are refused
 * without a database read. A well-formed key may still not exist.
 */
export function isWellFormedKey(text: string): boolean {
  if (!FORM.test(text)) return false;
  const cut = text.length - CHECKSUM_LENGTH;
  return checksum(text.slice(0, cut - 1)) === text.slice(cut);
}

/** The hash that is stored instead of a key: HMAC-SHA-256 under a version of the pepper, 32 bytes. */
export function hashKey(key: string, pepper: Buffer): Buffer {
  return createHmac('sha256', pepper).update(key).digest();
}

/** The hashes under which a key may be stored: one for each accepted version of the pepper. */
export function hashesOf(key: string, pepper: Pepper): Buffer[] {
  return pepper.all().map(({ bytes }) => hashKey(key, bytes));
}

/** Enough of a key to recognise it: `pil_live_…ab12`, the last 4 characters of the random part. */
export function keyHint(key: string): string {
  const end = key.length - CHECKSUM_LENGTH - 1;
  return `${KEY_PREFIX}…${key.slice(end - 4, end)}`;
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    text = LETTERS[rest % 62] + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
