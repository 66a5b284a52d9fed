import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '../../../lib/config/config.ts';
import { parseStrictJson } from '../../../lib/json/strict-json.ts';

const FILE_BYTES_MAX = 1_048_576;

type Faulty = { readonly ok: false; readonly faults: readonly string[] };

/** Reads the JSON file that a setting names. @throws ConfigError in one sentence */
export function readSettingsFile<Parsed extends { readonly ok: true }>(
  setting: string,
  path: string,
  parse: (text: string) => Parsed | Faulty,
): Parsed {
  let text: string;
  try {
    if (statSync(path).size > FILE_BYTES_MAX) throw new Error(`is over ${FILE_BYTES_MAX} bytes`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${setting} ${path} cannot be read: ${(error as Error).message}`);
  }
  const parsed = parse(text);
  if (parsed.ok) return parsed;
  throw new ConfigError(`${setting} ${path} is faulty: ${parsed.faults.join(' ')}`);
}

/** Parses a JSON object whose members are `members`. Never throws. */
export function parseObject(
  text: string,
  members: string,
): { readonly ok: true; readonly value: Record<string, unknown> } | Faulty {
  const parsed = parseStrictJson(Buffer.from(text));
  if (!parsed.ok) {
    return {
      ok: false,
      faults: parsed.faults.map(({ pointer, detail }) => `${pointer} ${detail}`),
    };
  }
  if (isObject(parsed.value)) return { ok: true, value: parsed.value };
  return { ok: false, faults: [`must be an object of ${members}.`] };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
