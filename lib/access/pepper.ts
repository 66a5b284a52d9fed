import { readFileSync } from 'node:fs';
import { ConfigError, type ConfigReader } from '../config.ts';

const PEPPER_BYTES_MIN = 32;

/** Name of the file that holds the pepper of key hashes: KEY_PEPPER_FILE. */
export function readPepperPath(reader: ConfigReader): string {
  return reader.text('KEY_PEPPER_FILE');
}

/**
 * Reads the pepper: at least 32 bytes as hex, one line. It must be the same in every process and
 * is no part of a database dump; without it every key is void.
 * @throws ConfigError
 */
export function readPepper(path: string): Buffer {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`KEY_PEPPER_FILE ${path} cannot be read (${code}).`);
  }
  if (!/^(?:[0-9a-f]{2})+$/i.test(text) || text.length < 2 * PEPPER_BYTES_MIN) {
    throw new ConfigError(
      `KEY_PEPPER_FILE ${path} must hold at least ${PEPPER_BYTES_MIN} bytes as hex; ` +
        'make one with: openssl rand -hex 32',
    );
  }
  return Buffer.from(text, 'hex');
}
