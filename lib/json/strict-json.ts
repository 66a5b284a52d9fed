import { isUtf8 } from 'node:buffer';
import { type ParseErrorCode, visit } from 'jsonc-parser';
import type { Fault, FaultCode } from '../../schemas/fault.ts';
import { syntaxHint } from './syntax-hint.ts';

/** Nesting of arrays and objects; no document of the product needs more than four levels. */
export const JSON_DEPTH_MAX = 16;
/** Faults reported for one document: an answer must not grow with the number of faults. */
const FAULTS_MAX = 100;
/** The depth of longer texts is checked before V8 parses them. */
const PARSE_FIRST_BYTES_MAX = 64 * 1024;
const POINTER_KEY_CHARS_MAX = 64;

/** `value` of a refused document is the result of `JSON.parse`; undefined when that failed. */
export type StrictJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly faults: readonly Fault[]; readonly value?: unknown };

export type StrictJsonArray =
  | { readonly ok: false; readonly faults: readonly Fault[] }
  | {
      readonly ok: true;
      readonly rows: readonly unknown[];
      /** Faults inside rows, by index; their pointers start at the row. */
      readonly faults: ReadonlyMap<number, readonly Fault[]>;
    };

/**
 * Parses one JSON document as strictly as RFC 8259 allows: UTF-8 without BOM, no duplicate key
 * (RFC 7493 section 2.3), no `__proto__`, finite numbers only, well-formed keys, bounded depth.
 * String values with lone surrogates pass. Never throws, for any bytes.
 */
export function parseStrictJson(bytes: Buffer, depthMax = JSON_DEPTH_MAX): StrictJson {
  const parsed = parseBytes(bytes, depthMax);
  if (parsed.clean) return { ok: true, value: parsed.value };
  const faults = parsed.located.map(({ path, code, detail }) => toFault(path, code, detail));
  return { ok: false, faults, value: parsed.value };
}

/** As `parseStrictJson`, for an array: a fault inside one row leaves the other rows usable. */
export function parseStrictJsonArray(bytes: Buffer, depthMax = JSON_DEPTH_MAX): StrictJsonArray {
  const parsed = parseBytes(bytes, depthMax);
  const whole = parsed.clean ? [] : parsed.located.filter(({ path }) => path.length === 0);
  if (whole.length > 0) {
    return { ok: false, faults: whole.map(({ code, detail }) => toFault([], code, detail)) };
  }
  if (!Array.isArray(parsed.value)) {
    return { ok: false, faults: [toFault([], 'not_an_array', 'Send [{…}, {…}].')] };
  }
  const faults = new Map<number, Fault[]>();
  for (const { path, code, detail } of parsed.clean ? [] : parsed.located) {
    const row = Number(path[0]);
    const known = faults.get(row) ?? [];
    faults.set(row, known);
    known.push(toFault(path.slice(1), code, detail));
  }
  return { ok: true, rows: parsed.value, faults };
}

type Path = readonly (string | number)[];

interface LocatedFault {
  /** Empty when the whole document is refused. */
  readonly path: Path;
  readonly code: FaultCode;
  readonly detail: string;
}

type Parsed =
  | { readonly clean: true; readonly value: unknown }
  | { readonly clean: false; readonly value?: unknown; readonly located: readonly LocatedFault[] };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function parseBytes(bytes: Buffer, depthMax: number): Parsed {
  const length = bytes.length;
  let quotes = 0;
  let escapes = false;
  let union = 0;
  for (let i = 0; i < length; i += 1) {
    const byte = bytes[i]!;
    union |= byte;
    if (byte === QUOTE) quotes += 1;
    else if (byte === BACKSLASH) escapes = true;
  }
  const isAscii = union < 0x80;
  if (!isAscii) {
    const fault = encodingFault(bytes);
    if (fault !== undefined) return { clean: false, located: [fault] };
  }
  if (length > PARSE_FIRST_BYTES_MAX && deeperAt(bytes, depthMax) >= 0) {
    return { clean: false, located: [tooDeep(bytes, depthMax)] };
  }
  const text = bytes.toString(isAscii ? 'latin1' : 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { clean: false, located: [syntaxFault(bytes, text, depthMax)] };
  }
  // Every key and every string value of the result is one string token of the text. A duplicate key
  // leaves at least its own token over, at any depth: equal counts mean no duplicate key.
  const tokens = escapes ? countStrings(bytes) : quotes / 2;
  if (countOf(value, depthMax, escapes) === tokens) return { clean: true, value };
  return { clean: false, value, located: findFaults(bytes, text, depthMax) };
}

/** Number of strings in the value, keys included; NaN when the text needs a closer look. */
function countOf(value: unknown, depthLeft: number, escapes: boolean): number {
  if (typeof value === 'string') return 1;
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== 'object' || value === null) return 0;
  if (depthLeft === 0) return Number.NaN;
  let count = 0;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) count += countOf(value[i], depthLeft - 1, escapes);
    return count;
  }
  const object = value as Readonly<Record<string, unknown>>;
  for (const key in object) {
    if (key === '__proto__' || (escapes && !key.isWellFormed())) return Number.NaN;
    const member = object[key];
    if (typeof member === 'string') count += 2;
    else count += 1 + countOf(member, depthLeft - 1, escapes);
  }
  return count;
}

/** Number of string tokens in a text that is valid JSON. */
function countStrings(bytes: Buffer): number {
  let count = 0;
  let inside = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      inside = !inside;
      if (inside) count += 1;
    } else if (byte === BACKSLASH) i += 1; // in valid JSON only inside a string
  }
  return count;
}

function encodingFault(bytes: Buffer): LocatedFault | undefined {
  const [a, b, c] = bytes;
  if (a === 0xef && b === 0xbb && c === 0xbf) {
    return whole('byte_order_mark', 'Remove the three bytes EF BB BF at the start.');
  }
  if (isUtf8(bytes)) return undefined;
  const isUtf16 = (a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff);
  return whole('invalid_utf8', isUtf16 ? 'Looks like UTF-16. Send UTF-8.' : 'Send UTF-8.');
}

/** @returns the byte where the nesting exceeds `depthMax`, or -1; accepts any bytes. */
function deeperAt(bytes: Buffer, depthMax: number): number {
  let depth = 0;
  let inside = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i]!;
    if (byte === QUOTE) inside = !inside;
    else if (inside) {
      if (byte === BACKSLASH) i += 1;
    } else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > depthMax) return i;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return -1;
}

function tooDeep(bytes: Buffer, depthMax: number): LocatedFault {
  const at = deeperAt(bytes, depthMax);
  return whole('json_too_deep', `Deeper than ${depthMax} at byte ${at}.`);
}

const STRICT = { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false };

// V8's own message mostly gives no position, and repeats the sender's text.
function syntaxFault(bytes: Buffer, text: string, depthMax: number): LocatedFault {
  if (text.trim() === '') return whole('json_syntax', 'The body is empty.');
  // The visitor below recurses, so the depth is checked first.
  if (deeperAt(bytes, depthMax) >= 0) return tooDeep(bytes, depthMax);
  if (bytes.includes(0)) return whole('json_syntax', 'Contains NUL bytes. Send UTF-8, not UTF-16.');
  let detail: string | undefined;
  const onError = (code: ParseErrorCode, at: number, _l: number, line: number, column: number) => {
    const place = `Line ${line + 1}, column ${column + 1}: `;
    detail ??= place + syntaxHint(code, text, at);
  };
  visit(text, { onError }, STRICT);
  return whole('json_syntax', detail ?? 'Not a single JSON document.');
}

/** Finds the faults that `countOf` detected. The text is valid JSON. */
function findFaults(bytes: Buffer, text: string, depthMax: number): readonly LocatedFault[] {
  if (deeperAt(bytes, depthMax) >= 0) return [tooDeep(bytes, depthMax)];
  const located: LocatedFault[] = [];
  const open: Set<string>[] = [];
  const add = (path: Path, code: FaultCode, detail: string) => {
    if (located.length < FAULTS_MAX) located.push({ path, code, detail });
  };
  visit(text, {
    onObjectBegin: () => void open.push(new Set()),
    onObjectEnd: () => void open.pop(),
    onObjectProperty(key, _offset, _length, line, column, pathTo) {
      const at = `at line ${line + 1}, column ${column + 1}.`;
      const keys = open.at(-1)!;
      const path = () => [...pathTo(), key];
      if (keys.has(key)) add(path(), 'duplicate_key', `Duplicate key ${at}`);
      keys.add(key);
      if (key === '__proto__') add(path(), 'forbidden_key', `Remove this key ${at}`);
      if (!key.isWellFormed()) add(path(), 'lone_surrogate', `Lone surrogate in a key ${at}`);
    },
    onLiteralValue(value, _offset, _length, _line, _column, pathTo) {
      if (typeof value === 'number' && !Number.isFinite(value)) {
        add(pathTo(), 'not_finite', 'Not a finite double.');
      }
    },
  });
  // No known input leads here; a document whose counts differ is refused in any case.
  return located.length > 0 ? located : [whole('json_syntax', 'Not a plain JSON document.')];
}

function whole(code: FaultCode, detail: string): LocatedFault {
  return { path: [], code, detail };
}

/** JSON pointer as a URI fragment (RFC 6901 section 6); long keys are truncated. */
function toFault(path: Path, code: FaultCode, detail: string): Fault {
  const steps = path.map((step) => {
    const cut = String(step).slice(0, POINTER_KEY_CHARS_MAX).toWellFormed();
    return `/${encodeURIComponent(cut.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
  });
  return { pointer: `#${steps.join('')}`, code, detail };
}
