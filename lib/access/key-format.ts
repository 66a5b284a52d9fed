import { createHmac, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Base 62: a double click selects the whole key, and nothing in it needs escaping. */
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'pil_live_';
/** 62^32 > 2^190. */
const RANDOM_LENGTH = 32;
/** 62^6 > 2^32, the range of CRC-32. */
const CHECKSUM_LENGTH = 6;
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH}}_[0-9A-Za-z]{${CHECKSUM_LENGTH}}$`);

/** Makes a key: `pil_live_<32 random>_<checksum>`. It is shown once and stored nowhere. */
export function newKey(): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => LETTERS[randomInt(62)]).join('');
  const body = `${PREFIX}${random}`;
  return `${body}_${checksum(body)}`;
}

/**
 * Whether a text can be a key at all: form and checksum. Typing errors and scanners are refused
 * without a look-up; it says nothing about whether the key exists.
 */
export function isWellFormedKey(text: string): boolean {
  if (!FORM.test(text)) return false;
  const cut = text.length - CHECKSUM_LENGTH;
  return checksum(text.slice(0, cut - 1)) === text.slice(cut);
}

/** What is stored instead of a key: HMAC-SHA-256 under the pepper, 32 bytes. */
export function hashKey(key: string, pepper: Buffer): Buffer {
  return createHmac('sha256', pepper).update(key).digest();
}

/** Enough of a key to recognise it: `pil_live_…ab12`, the last four of the random part. */
export function keyHint(key: string): string {
  const end = key.length - CHECKSUM_LENGTH - 1;
  return `${PREFIX}…${key.slice(end - 4, end)}`;
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
