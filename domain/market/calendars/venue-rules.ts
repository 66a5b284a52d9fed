import { isSymbol, isTestSymbol } from '../../../schemas/pill.ts';
import { isObject, parseObject, readSettingsFile } from './settings-file.ts';
import { VENUES, type Venue, venueOf } from './venue.ts';

/** A venue with a calendar, or `ALWAYS`: a market that never closes, e.g. for cryptocurrencies. */
export type TradingVenue = Venue | 'ALWAYS';

/** Finds the venue of a symbol; undefined when unknown. */
export type VenueOf = (symbol: string) => TradingVenue | undefined;

/** Venues of symbols that take precedence over `venueOf`. */
export type VenueRules = Readonly<
  Record<(typeof KINDS)[number], Readonly<Record<string, TradingVenue>>>
>;

export const NO_RULES: VenueRules = { exact: {}, prefix: {}, suffix: {} };

export const TRADING_VENUES: readonly TradingVenue[] = [...VENUES, 'ALWAYS'];
const KINDS = ['exact', 'prefix', 'suffix'] as const;
const RULES_MAX = 10_000;

/**
 * Parses the venues of symbols for which the built-in forms give none, or another one:
 *
 *     { "exact":  { "^NZ50": "XNZE" },
 *       "prefix": { "COIN:": "ALWAYS" },
 *       "suffix": { "-USDT": "ALWAYS", ".TYO": "XTKS" } }
 *
 * Precedence: exact name, longest prefix, longest suffix, built-in forms. All faults are reported
 * together; never throws.
 */
export function parseVenueRules(
  text: string,
):
  | { readonly ok: true; readonly rules: VenueRules }
  | { readonly ok: false; readonly faults: readonly string[] } {
  const parsed = parseObject(text, 'rules');
  if (!parsed.ok) return parsed;
  const faults: string[] = [];
  const rules: Record<(typeof KINDS)[number], Record<string, TradingVenue>> = {
    exact: {},
    prefix: {},
    suffix: {},
  };
  let count = 0;
  for (const [name, places] of Object.entries(parsed.value)) {
    const kind = KINDS.find((known) => known === name);
    if (kind === undefined) faults.push(`${name}: unknown. Known kinds: ${KINDS.join(', ')}.`);
    else if (!isObject(places)) faults.push(`${kind}: must be an object of venues.`);
    else {
      for (const [form, named] of Object.entries(places)) {
        const place = TRADING_VENUES.find((known) => known === named);
        const fault = formFault(kind, form);
        if (fault !== undefined) faults.push(`${kind} "${form}": ${fault}`);
        else if (place === undefined) {
          faults.push(
            `${kind} "${form}": unknown venue. Known venues: ${TRADING_VENUES.join(', ')}.`,
          );
        } else rules[kind][form] = place;
        count += 1;
      }
    }
  }
  if (count > RULES_MAX) faults.push(`has ${count} rules, limit ${RULES_MAX}.`);
  return faults.length === 0 ? { ok: true, rules } : { ok: false, faults };
}

/** Reads the file of VENUE_RULES; undefined: no rules. @throws ConfigError in one sentence. */
export function readVenueRules(path: string | undefined): VenueRules {
  if (path === undefined) return NO_RULES;
  return readSettingsFile('VENUE_RULES', path, parseVenueRules).rules;
}

/** Compiles the rules: some hundred ns per call with a hundred rules. Test symbols have no venue. */
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

function longestFirst(places: Readonly<Record<string, TradingVenue>>): [string, TradingVenue][] {
  return Object.entries(places).sort(([a], [b]) => b.length - a.length);
}

function formFault(kind: (typeof KINDS)[number], form: string): string | undefined {
  // A suffix such as ".VN" is not itself a symbol, so it is checked with a character before it.
  if (!isSymbol(kind === 'suffix' ? `0${form}` : form) || form === '') {
    return 'no symbol has this form. Allowed: capital letters, digits and . : / _ & = ^ -.';
  }
  if (kind !== 'suffix' && isTestSymbol(form)) return 'TEST: is reserved and always open.';
  return undefined;
}
