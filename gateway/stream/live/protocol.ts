import { parseStrictJson } from '../../../lib/strict-json.ts';
import { isSymbol } from '../../../schemas/pill.ts';
import { type Position, parsePosition } from '../../../schemas/position.ts';
import { type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import type { ErrorName } from '../contract/error-codes.ts';
import { LIMITS } from '../limits.ts';
import { EVERY_SYMBOL, type Filter, type Mode } from './subscription.ts';

/** Where a client wants to go on. */
export type ResumeRequest =
  | { readonly kind: 'position'; readonly position: Position }
  | { readonly kind: 'since'; readonly since: Micros };

export interface SubscribeFrame {
  readonly op: 'subscribe';
  readonly id: string | undefined;
  /** As they came, each once; some may not have the form of a symbol. */
  readonly symbols: readonly string[];
  readonly mode: Mode;
  readonly snapshot: boolean;
  readonly backfill: boolean;
  readonly resume: ResumeRequest | undefined;
  readonly filter: Filter | undefined;
}

export type ClientFrame =
  | SubscribeFrame
  | { readonly op: 'auth'; readonly id: string | undefined; readonly key: string }
  | { readonly op: 'unsubscribe'; readonly id: string | undefined; readonly symbols: string[] }
  | { readonly op: 'ping'; readonly id: string | undefined; readonly t: number | undefined };

/** What is wrong with a frame; the connection goes on. */
export interface FrameFault {
  readonly id: string | undefined;
  readonly code: ErrorName;
  readonly message: string;
}

export type ParsedFrame =
  | { readonly ok: true; readonly frame: ClientFrame }
  | { readonly ok: false; readonly fault: FrameFault };

type Fields = Readonly<Record<string, unknown>>;

/** Thrown and caught inside this file: a frame has one answer, its first fault. */
class FaultError extends Error {
  readonly code: ErrorName;
  constructor(code: ErrorName, message: string) {
    super(message);
    this.code = code;
  }
}

const OPS: Readonly<Record<string, readonly string[]>> = {
  auth: ['key'],
  subscribe: ['symbols', 'mode', 'snapshot', 'backfill', 'resume', 'filter'],
  unsubscribe: ['symbols'],
  ping: ['t'],
};
const FILTER_FIELDS = ['min_confidence', 'min_spread', 'max_spread', 'states'];
const TOLD_CHARS_MAX = 64;

/**
 * Parses one client frame. Never throws, whatever the bytes.
 * @returns the frame, or its first fault with a message that says what is known.
 */
export function parseFrame(bytes: Buffer): ParsedFrame {
  const json = parseStrictJson(bytes);
  if (!json.ok) {
    const { pointer, detail } = json.faults[0]!;
    const message = pointer === '#' ? detail : `${pointer}: ${detail}`;
    return { ok: false, fault: { id: undefined, code: 'json_malformed', message } };
  }
  const { value } = json;
  if (!isObject(value)) {
    const message = `A frame is a JSON object such as {"op":"ping"}, not ${nameOf(value)}.`;
    return { ok: false, fault: { id: undefined, code: 'json_malformed', message } };
  }
  const id = typeof value.id === 'string' ? value.id.slice(0, LIMITS.frameIdLengthMax) : undefined;
  try {
    return { ok: true, frame: readFrame(value) };
  } catch (error) {
    if (!(error instanceof FaultError)) throw error;
    return { ok: false, fault: { id, code: error.code, message: error.message } };
  }
}

function readFrame(fields: Fields): ClientFrame {
  const { op } = fields;
  const known = Object.keys(OPS).join(', ');
  if (op === undefined) throw new FaultError('missing_field', `No "op". Known: ${known}.`);
  if (typeof op !== 'string') throw wrongType('op', 'a string', op);
  if (!Object.hasOwn(OPS, op)) {
    throw new FaultError('unknown_op', `No op "${told(op)}". Known: ${known}.`);
  }
  checkFields(fields, ['op', 'id', ...OPS[op]!], `"${op}"`);
  const id = readId(fields.id);
  if (op === 'auth') return { op, id, key: readKey(fields.key) };
  if (op === 'ping') return { op, id, t: optional(fields, 't', 'a number', isFinite64) };
  if (op === 'unsubscribe') return { op, id, symbols: readSymbols(fields) };
  return readSubscribe(fields, id);
}

function readSubscribe(fields: Fields, id: string | undefined): SubscribeFrame {
  const mode = optional(fields, 'mode', '"all" or "latest"', isMode) ?? 'all';
  const snapshot = optional(fields, 'snapshot', 'true or false', isBoolean) ?? true;
  const backfill = optional(fields, 'backfill', 'true or false', isBoolean) ?? false;
  const symbols = readSymbols(fields);
  const resume = readResume(fields.resume);
  const filter = readFilter(fields.filter);
  return { op: 'subscribe', id, symbols, mode, snapshot, backfill, resume, filter };
}

function readId(id: unknown): string | undefined {
  if (id === undefined) return undefined;
  if (typeof id !== 'string') throw wrongType('id', 'a string', id);
  if (id.length <= LIMITS.frameIdLengthMax) return id;
  throw outOfRange('id', `${id.length} characters, limit ${LIMITS.frameIdLengthMax}`);
}

function readKey(key: unknown): string {
  if (typeof key === 'string') return key;
  if (key === undefined) throw new FaultError('missing_field', 'No "key": send an API key.');
  // What came instead is not repeated: it may be half a key.
  throw new FaultError('wrong_type', '"key" is a string.');
}

function readSymbols(fields: Fields): string[] {
  const { symbols } = fields;
  const wanted = 'an array of 1 to 1,000 symbols, or ["*"]';
  if (symbols === undefined) throw new FaultError('missing_field', `No "symbols": send ${wanted}.`);
  if (!Array.isArray(symbols)) throw wrongType('symbols', wanted, symbols);
  const odd = symbols.find((symbol) => typeof symbol !== 'string');
  if (odd !== undefined) throw wrongType('symbols', 'an array of strings', odd);
  if (symbols.length === 0 || symbols.length > LIMITS.symbolsPerConnectionMax) {
    throw outOfRange('symbols', `holds ${symbols.length}; send ${wanted}`);
  }
  const distinct = [...new Set<string>(symbols)];
  if (distinct.length > 1 && distinct.includes(EVERY_SYMBOL)) {
    throw outOfRange('symbols', '"*" stands alone; name further symbols in a frame of their own');
  }
  return distinct;
}

function readResume(resume: unknown): ResumeRequest | undefined {
  if (resume === undefined || resume === null) return undefined;
  if (typeof resume === 'string') {
    const position = parsePosition(resume);
    if (position !== undefined) return { kind: 'position', position };
    throw new FaultError(
      'position_malformed',
      '"resume" is a position as frames carry it: "<epoch>:<partition>-<offset>,…".',
    );
  }
  if (!isObject(resume)) throw wrongType('resume', 'a position or {"since":"…"}', resume);
  checkFields(resume, ['since'], '"resume"');
  if (typeof resume.since !== 'string') throw wrongType('since', 'a time', resume.since);
  const since = parseTimestamp(resume.since);
  if (since.ok) return { kind: 'since', since: since.micros };
  throw new FaultError('position_malformed', `"since": ${since.detail}`);
}

function readFilter(filter: unknown): Filter | undefined {
  if (filter === undefined || filter === null) return undefined;
  if (!isObject(filter)) throw wrongType('filter', 'an object', filter);
  checkFields(filter, FILTER_FIELDS, '"filter"');
  const number = (name: string) => optional(filter, name, 'a number', isFinite64);
  const minConfidence = number('min_confidence') ?? Number.NEGATIVE_INFINITY;
  const minSpread = number('min_spread') ?? Number.NEGATIVE_INFINITY;
  const maxSpread = number('max_spread') ?? Number.POSITIVE_INFINITY;
  if (minSpread > maxSpread) throw outOfRange('filter', 'min_spread is above max_spread');
  const states = optional(filter, 'states', 'an array of labels', isStrings);
  if (states !== undefined && (states.length === 0 || states.length > LIMITS.filterStatesMax)) {
    throw outOfRange('states', `holds ${states.length}; send 1 to ${LIMITS.filterStatesMax}`);
  }
  if (Object.keys(filter).length === 0) return undefined;
  return { minConfidence, minSpread, maxSpread, states: states && new Set(states) };
}

/** Symbols of a subscribe frame, each with what speaks against it. */
export function faultOfSymbol(symbol: string): 'symbol_malformed' | undefined {
  return symbol === EVERY_SYMBOL || isSymbol(symbol) ? undefined : 'symbol_malformed';
}

function checkFields(fields: Fields, known: readonly string[], place: string): void {
  const odd = Object.keys(fields).find((key) => !known.includes(key));
  if (odd === undefined) return;
  const message = `${place} has no field "${told(odd)}". Known: ${known.join(', ')}.`;
  throw new FaultError('unknown_field', message);
}

function optional<T>(
  fields: Fields,
  name: string,
  wanted: string,
  is: (value: unknown) => value is T,
): T | undefined {
  const value = fields[name];
  if (value === undefined || is(value)) return value;
  throw wrongType(name, wanted, value);
}

function wrongType(name: string, wanted: string, got: unknown): FaultError {
  return new FaultError('wrong_type', `"${name}" is ${wanted}, not ${nameOf(got)}.`);
}

function outOfRange(name: string, detail: string): FaultError {
  return new FaultError('out_of_range', `"${name}" ${detail}.`);
}

function told(text: string): string {
  return text.slice(0, TOLD_CHARS_MAX).toWellFormed();
}

function nameOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return `"${told(value)}"`;
  return typeof value === 'object' ? 'an object' : String(value);
}

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isMode = (value: unknown): value is Mode => value === 'all' || value === 'latest';
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const isFinite64 = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);
const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
