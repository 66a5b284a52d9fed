import { readFileSync, statSync } from 'node:fs';
import { isSymbol, isTestSymbol } from '../../schemas/pill.ts';
import { ConfigError } from '../config.ts';
import { parseStrictJson } from '../strict-json.ts';
import { VENUES, type Venue, venueOf } from './venue.ts';

/** A venue with a calendar, or `ALWAYS`: a market that never closes, such as that of coins. */
export type Place = Venue | 'ALWAYS';

/** Where a symbol trades; undefined where nobody knows. */
export type VenueOf = (symbol: string) => Place | undefined;

/** Places of symbols that win over `venueOf`. */
export interface VenueRules {
  readonly exact: Readonly<Record<string, Place>>;
  readonly prefix: Readonly<Record<string, Place>>;
  readonly suffix: Readonly<Record<string, Place>>;
}

export type ParsedVenueRules =
  | { readonly ok: true; readonly rules: VenueRules }
  | { readonly ok: false; readonly faults: readonly string[] };

export const NO_RULES: VenueRules = { exact: {}, prefix: {}, suffix: {} };

const PLACES: readonly Place[] = [...VENUES, 'ALWAYS'];
const KINDS = ['exact', 'prefix', 'suffix'] as const;
const FILE_BYTES_MAX = 1_048_576;
const RULES_MAX = 10_000;

/**
 * Parses where symbols trade that the built-in forms do not know, or know otherwise:
 *
 *     { "exact":  { "^NZ50": "XNZE" },
 *       "prefix": { "COIN:": "ALWAYS" },
 *       "suffix": { "-USDT": "ALWAYS", ".TYO": "XTKS" } }
 *
 * An exact name wins, then the longest prefix, then the longest suffix, then the built-in forms.
 * Faults are told all at once; never throws.
 */
export function parseVenueRules(text: string): ParsedVenueRules {
  const parsed = parseStrictJson(Buffer.from(text));
  if (!parsed.ok) {
    return { ok: false, faults: parsed.faults.map((fault) => `${fault.pointer} ${fault.detail}`) };
  }
  if (!isObject(parsed.value)) return { ok: false, faults: ['must be an object of rules.'] };
  const faults: string[] = [];
  const rules: Record<(typeof KINDS)[number], Record<string, Place>> = {
    ...{ exact: {}, prefix: {}, suffix: {} },
  };
  let count = 0;
  for (const [name, places] of Object.entries(parsed.value)) {
    const kind = KINDS.find((known) => known === name);
    if (kind === undefined) faults.push(`${name}: not known; ${KINDS.join(', ')} are.`);
    else if (!isObject(places)) faults.push(`${kind}: must be an object of places.`);
    else {
      for (const [form, named] of Object.entries(places)) {
        const place = PLACES.find((known) => known === named);
        const fault = formFault(kind, form);
        if (fault !== undefined) faults.push(`${kind} "${form}": ${fault}`);
        else if (place === undefined) {
          faults.push(`${kind} "${form}": no such venue; known are ${PLACES.join(', ')}.`);
        } else rules[kind][form] = place;
        count += 1;
      }
    }
  }
  if (count > RULES_MAX) faults.push(`has ${count} rules, limit ${RULES_MAX}.`);
  return faults.length === 0 ? { ok: true, rules } : { ok: false, faults };
}

/** Reads the file of VENUE_RULES; undefined = none. @throws ConfigError in one sentence. */
export function readVenueRules(path: string | undefined): VenueRules {
  if (path === undefined) return NO_RULES;
  let text: string;
  try {
    if (statSync(path).size > FILE_BYTES_MAX) throw new Error(`is over ${FILE_BYTES_MAX} bytes`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`VENUE_RULES ${path} cannot be read: ${(error as Error).message}`);
  }
  const parsed = parseVenueRules(text);
  if (parsed.ok) return parsed.rules;
  throw new ConfigError(`VENUE_RULES ${path} is faulty: ${parsed.faults.join(' ')}`);
}

/** Makes the look-up: some hundred ns with a hundred rules. Test symbols have no venue. */
export function createVenueOf(rules: VenueRules): VenueOf {
  const exact = new Map(Object.entries(rules.exact));
  const prefixes = longestFirst(rules.prefix);
  const suffixes = longestFirst(rules.suffix);
  return (symbol) => {
    if (isTestSymbol(symbol)) return undefined;
    return (
      exact.get(symbol) ??
      prefixes.find(([form]) => symbol.startsWith(form))?.[1] ??
      suffixes.find(([form]) => symbol.endsWith(form))?.[1] ??
      venueOf(symbol)
    );
  };
}

function longestFirst(places: Readonly<Record<string, Place>>): [string, Place][] {
  return Object.entries(places).sort(([a], [b]) => b.length - a.length);
}

function formFault(kind: (typeof KINDS)[number], form: string): string | undefined {
  // A suffix such as ".VN" is no symbol: what stands before it makes it one.
  if (!isSymbol(kind === 'suffix' ? `0${form}` : form) || form === '') {
    return 'no symbol can have this form: capitals, digits and . : / _ & = ^ - alone.';
  }
  if (kind !== 'suffix' && isTestSymbol(form)) return 'TEST: is reserved, and always open.';
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
