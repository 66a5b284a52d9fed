import type { Fault, FaultCode } from './fault.ts';
import { numberHint } from './number-hint.ts';
import { type Micros, parseTimestamp } from './timestamp.ts';

/** The six fields that a generator sends; names as on the wire, times in microseconds. */
export interface Pill {
  readonly id: string;
  readonly timestamp: Micros;
  readonly symbol: string;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
}

/** A pill in the log: the sender's fields, and the fields that the gateway added. */
export interface PillRecord extends Pill {
  readonly received_at: Micros | null;
  readonly source: string | null;
  readonly kind: string | null;
}

/** The fields of a pill apart from its identity. */
export type PillContent = Pick<
  Pill,
  'timestamp' | 'gross_spread_percent' | 'market_state' | 'confidence'
>;

export interface PillRules {
  /** Upper bound of `confidence`, from the topic settings. */
  readonly confidenceMax: number;
  /** The clock that `timestamp` may be at most `FUTURE_MAX_MICROS` ahead of. */
  readonly now: Micros;
}

export type ParsedPill =
  | { readonly ok: true; readonly pill: Pill }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** A generator's clock may be ahead by this much. */
export const FUTURE_MAX_MICROS = 5 * 60 * 1_000_000;
export const SPREAD_MAX = 1e6;

const FIELDS = [
  'id',
  'timestamp',
  'symbol',
  'gross_spread_percent',
  'market_state',
  'confidence',
] as const;
const FIELD_SET: ReadonlySet<string> = new Set(FIELDS);

/** Form of a symbol, for schemas. */
export const SYMBOL_PATTERN = '^[A-Z0-9^][A-Z0-9.:/_&=^-]{0,31}$';
const SYMBOL = new RegExp(SYMBOL_PATTERN);
const PRINTABLE_ASCII = /^[\x20-\x7e]{1,128}$/;
// \p{C} covers controls, formats, surrogates, private use and unassigned code points.
const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}\ufffd]{1,128}$/u;
// Tried first: the classes of all scripts below cost ten times as much.
const STATE_ASCII = /^[A-Za-z0-9 _\-./:()+]{1,32}$/;
const STATE = /^[\p{L}\p{M}\p{Nd} _\-./:()+]{1,32}$/u;

const SOURCE = /^[\x20-\x7e]{1,64}$/;

/** Whether a text is a valid `source`: 1 to 64 printable ASCII characters. */
export function isSource(text: string): boolean {
  return SOURCE.test(text);
}

/** Prefix of symbols for canaries and tests, which reach only readers that name them. */
export const TEST_PREFIX = 'TEST:';

export function isTestSymbol(symbol: string): boolean {
  return symbol.startsWith(TEST_PREFIX);
}

/** Whether the text is a symbol: 1 to 32 capital letters, digits and . : / _ & = ^ - */
export function isSymbol(text: string): boolean {
  return SYMBOL.test(text);
}

/** Whether the text is an id of a pill. */
export function isId(text: string): boolean {
  return PRINTABLE_ASCII.test(text) || PRINTABLE.test(text);
}

export const ID_HINT = 'An id has 1 to 128 printable characters.';
export const MARKET_STATE_HINT =
  'A market state has 1 to 32 letters, digits, spaces or _ - . / : ( ) +, e.g. open.';

/** Whether the text is a market state: 1 to 32 letters, digits, spaces or _ - . / : ( ) + */
export function isMarketState(text: string): boolean {
  return STATE_ASCII.test(text) || STATE.test(text);
}

/** Identity of a pill: the first record with an identity has effect. */
export function identityOf(pill: Pick<Pill, 'symbol' | 'id'>): string {
  // Neither part can contain a newline, so distinct pairs give distinct texts.
  return `${pill.symbol}\n${pill.id}`;
}

/** Whether two pills of one identity have the same content, compared as parsed values. */
export function isSameContent(a: PillContent, b: PillContent): boolean {
  return (
    a.timestamp === b.timestamp &&
    a.gross_spread_percent === b.gross_spread_percent &&
    a.market_state === b.market_state &&
    a.confidence === b.confidence
  );
}

/**
 * Parses the result of `JSON.parse` into a pill.
 * @returns the pill, or all faults with their pointers
 */
export function parsePill(value: unknown, rules: PillRules): ParsedPill {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const got = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
    return { ok: false, faults: [fault('#', 'not_an_object', `Got ${got}.`)] };
  }
  const input = value as Readonly<Record<string, unknown>>;
  const faults: Fault[] = [];
  checkKeys(input, faults);
  const id = readString(input, 'id', faults);
  if (id !== undefined) checkId(id, faults);
  const timestamp = readTimestamp(input, rules, faults);
  const symbol = readString(input, 'symbol', faults);
  if (symbol !== undefined) checkSymbol(symbol, faults);
  const spread = readNumber(input, 'gross_spread_percent', -SPREAD_MAX, SPREAD_MAX, faults);
  const state = readString(input, 'market_state', faults);
  if (state !== undefined) checkState(state, faults);
  const confidence = readNumber(input, 'confidence', 0, rules.confidenceMax, faults);
  if (faults.length > 0) return { ok: false, faults };
  return {
    ok: true,
    pill: {
      id: id!,
      timestamp: timestamp!,
      symbol: symbol!,
      gross_spread_percent: spread!,
      market_state: state!,
      confidence: confidence!,
    },
  };
}

/**
 * Checks a decoded record by the same rules: consumers trust no producer.
 * @returns all faults; empty when the record is a valid pill
 */
export function checkPill(pill: Pill, rules: PillRules): readonly Fault[] {
  const faults: Fault[] = [];
  checkId(pill.id, faults);
  if (!Number.isSafeInteger(pill.timestamp) || pill.timestamp < 0) {
    faults.push(fault('#/timestamp', 'timestamp_out_of_range', 'Before 1970 or after 2254.'));
  } else {
    checkFuture(pill.timestamp, rules.now, faults);
  }
  checkSymbol(pill.symbol, faults);
  checkRange(pill.gross_spread_percent, 'gross_spread_percent', -SPREAD_MAX, SPREAD_MAX, faults);
  checkState(pill.market_state, faults);
  checkRange(pill.confidence, 'confidence', 0, rules.confidenceMax, faults);
  return faults;
}

function checkKeys(input: object, faults: Fault[]): void {
  let known = 0;
  for (const key of Object.keys(input)) {
    if (FIELD_SET.has(key)) known += 1;
    else if (key === '__proto__' || key === 'constructor') {
      faults.push(fault(pointerTo(key), 'forbidden_key', 'Remove this key.'));
    } else {
      faults.push(fault(pointerTo(key), 'unknown_field', `A pill has ${FIELDS.join(', ')} only.`));
    }
  }
  if (known === FIELDS.length) return;
  for (const name of FIELDS) {
    if (!Object.hasOwn(input, name)) {
      faults.push(fault(`#/${name}`, 'missing_field', 'All six fields are required.'));
    }
  }
}

function readString(
  input: Readonly<Record<string, unknown>>,
  name: string,
  faults: Fault[],
): string | undefined {
  if (!Object.hasOwn(input, name)) return undefined;
  const value = input[name];
  if (typeof value !== 'string') {
    faults.push(fault(`#/${name}`, 'not_a_string', `Got ${describe(value)}.`));
    return undefined;
  }
  if (!value.isWellFormed()) {
    faults.push(fault(`#/${name}`, 'lone_surrogate', 'Contains half of a surrogate pair.'));
    return undefined;
  }
  return value;
}

function readNumber(
  input: Readonly<Record<string, unknown>>,
  name: string,
  min: number,
  max: number,
  faults: Fault[],
): number | undefined {
  if (!Object.hasOwn(input, name)) return undefined;
  const value = input[name];
  if (typeof value !== 'number') {
    const detail = `Got ${describe(value)}.${numberHint(value, true)}`;
    faults.push(fault(`#/${name}`, 'not_a_number', detail));
    return undefined;
  }
  checkRange(value, name, min, max, faults);
  return value === 0 ? 0 : value; // -0 is 0
}

function readTimestamp(
  input: Readonly<Record<string, unknown>>,
  rules: PillRules,
  faults: Fault[],
): Micros | undefined {
  const value = input.timestamp;
  if (typeof value === 'number') {
    const hint = 'Got a number. Send ISO 8601 text, e.g. "2026-11-20T01:02:03.004Z".';
    faults.push(fault('#/timestamp', 'not_a_string', hint));
    return undefined;
  }
  const text = readString(input, 'timestamp', faults);
  if (text === undefined) return undefined;
  const parsed = parseTimestamp(text);
  if (!parsed.ok) {
    faults.push(fault('#/timestamp', parsed.code, parsed.detail));
    return undefined;
  }
  checkFuture(parsed.micros, rules.now, faults);
  return parsed.micros;
}

function checkFuture(timestamp: Micros, now: Micros, faults: Fault[]): void {
  if (timestamp <= now + FUTURE_MAX_MICROS) return;
  const ahead = Math.round((timestamp - now) / 1e6);
  const hint = `${ahead} s ahead of the server's clock, limit 300 s. Is the generator's clock in UTC?`;
  faults.push(fault('#/timestamp', 'timestamp_in_future', hint));
}

function checkId(id: string, faults: Fault[]): void {
  if (isId(id)) return;
  if (id.includes('\ufffd')) faults.push(fault('#/id', 'invalid_utf8', 'Contains U+FFFD.'));
  else faults.push(fault('#/id', 'id_malformed', ID_HINT));
}

function checkSymbol(symbol: string, faults: Fault[]): void {
  if (SYMBOL.test(symbol)) return;
  faults.push(fault('#/symbol', 'symbol_malformed', hintForSymbol(symbol)));
}

/** Why a symbol is malformed, and the symbol that was probably meant. */
export function hintForSymbol(symbol: string): string {
  if (symbol === '') return 'The symbol is empty.';
  if (symbol.length > 32) return `${symbol.length} characters, limit 32.`;
  const meant = probableSymbol(symbol);
  const suggestion = meant === undefined ? '' : ` Perhaps you mean ${meant}.`;
  return `A symbol has 1 to 32 of the characters A–Z, 0–9 and . : / _ & = ^ -, e.g. 7203.T.${suggestion}`;
}

/**
 * The symbol that a malformed text probably means: in capitals, without white space, and with
 * full-width characters narrow (Unicode NFKC). @returns undefined if the result is not a symbol
 */
export function probableSymbol(text: string): string | undefined {
  if (text.length > 64) return undefined;
  const symbol = text.normalize('NFKC').replaceAll(/\s/g, '').toUpperCase();
  return SYMBOL.test(symbol) ? symbol : undefined;
}

function checkState(state: string, faults: Fault[]): void {
  if (isMarketState(state)) return;
  faults.push(fault('#/market_state', 'market_state_malformed', MARKET_STATE_HINT));
}

function checkRange(value: number, name: string, min: number, max: number, faults: Fault[]): void {
  if (!Number.isFinite(value)) {
    faults.push(fault(`#/${name}`, 'not_finite', 'Not a finite double.'));
  } else if (value < min || value > max) {
    faults.push(fault(`#/${name}`, 'out_of_range', `${value} is not in ${min} … ${max}.`));
  }
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function pointerTo(key: string): string {
  // RFC 6901: ~ and / are escaped; in a URI fragment the rest is percent-encoded. Truncated, so that
  // an answer never contains a kilobyte of a sender's key.
  const cut = key.slice(0, 64).toWellFormed();
  return `#/${encodeURIComponent(cut.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
}

function fault(pointer: string, code: FaultCode, detail: string): Fault {
  return { pointer, code, detail };
}
